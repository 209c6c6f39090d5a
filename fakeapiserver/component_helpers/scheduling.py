"""The nodes that a pod may run on, and the resources that it needs there. For the scheduler and the daemon set controller.

Upstream: k8s.io/component-helpers/scheduling/corev1 (helpers.go, nodeaffinity/nodeaffinity.go) and resource/helpers.go.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import milli_value, parse

# Thousandths of a CPU; of everything else whole units.
Amounts = dict[str, int]


def tolerates(tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    """Reports whether one of them tolerates the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator, value = toleration.get("operator") or "Equal", taint.get("value", "")
    if operator == "Exists":
        return True
    if operator == "Equal":
        return bool(toleration.get("key")) and toleration.get("value", "") == value
    compare = _COMPARISONS.get(operator)
    return (
        compare is not None
        and _is_integer(value)
        and _is_integer(toleration.get("value", ""))
        and compare(parse_int(value), parse_int(toleration["value"]))
    )


def untolerated_taint(
    taints: Iterable[Mapping[str, Any]], tolerations: Sequence[Mapping[str, Any]], effects: Iterable[str]
) -> Mapping[str, Any] | None:
    """The first taint of one of these effects that isn't tolerated."""
    wanted = frozenset(effects)
    return next((taint for taint in taints if taint["effect"] in wanted and not tolerates(tolerations, taint)), None)


def matches_node_affinity(pod: Object, node: Object) -> bool:
    """By its nodeSelector and the affinity it requires."""
    spec: Mapping[str, Any] = pod["spec"]
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required is None:
        return True
    return any(matches_term(term, node) for term in required.get("nodeSelectorTerms") or ())


def matches_term(term: Mapping[str, Any], node: Object) -> bool:
    """A NodeSelectorTerm; an empty one selects nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    labels = node["metadata"].get("labels") or {}
    known = {"metadata.name": node["metadata"]["name"]}
    return all(_holds(row, labels) for row in expressions) and all(_holds(row, known) for row in fields)


def _holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator = requirement["key"], requirement["operator"]
    values: Sequence[str] = requirement.get("values") or ()
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    compare = _COMPARISONS.get(operator)
    if compare is None or key not in labels or not _is_integer(labels[key]) or len(values) != 1:
        return False
    return _is_integer(values[0]) and compare(parse_int(labels[key]), parse_int(values[0]))


def _is_integer(text: str) -> bool:
    try:
        parse_int(text)
    except ValueError:
        return False
    return True


_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "Gt": lambda left, right: left > right,
    "Lt": lambda left, right: left < right,
}


def amounts_of(resources: Mapping[str, Any] | None) -> Amounts:
    """A ResourceList in numbers."""
    return {name: amount_of(name, text) for name, text in (resources or {}).items()}


def amount_of(name: str, text: object) -> int:
    """Thousandths of a CPU, or whole units."""
    quantity = parse(str(text))
    return milli_value(quantity) if name == "cpu" else quantity.value


def pod_requests(pod: Object) -> Amounts:
    """Returns the resources that the pod needs on its node.

    They are the sum of its containers, or more while its init containers run, plus its overhead. Requests of the pod as a whole take
    precedence.
    """
    spec: Mapping[str, Any] = pod["spec"]
    total: Amounts = {}
    for container in spec["containers"]:
        _add(total, _requests(container))
    sidecars: Amounts = {}
    while_starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        wanted = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(total, wanted)
            _add(sidecars, wanted)
            _raise(while_starting, sidecars)
        else:
            at_once = dict(sidecars)
            _add(at_once, wanted)
            _raise(while_starting, at_once)
    _raise(total, while_starting)
    total |= amounts_of((spec.get("resources") or {}).get("requests"))
    _add(total, amounts_of(spec.get("overhead")))
    return total


def _requests(container: Mapping[str, Any]) -> Amounts:
    return amounts_of((container.get("resources") or {}).get("requests"))


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Amounts, at_least: Amounts) -> None:
    for name, amount in at_least.items():
        total[name] = max(total.get(name, 0), amount)
