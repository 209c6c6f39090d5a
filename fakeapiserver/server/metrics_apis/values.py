"""The values of metrics that a test has set. Pure: callers pass pods and nodes."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.labels import parse as parse_selector
from fakeapiserver.apimachinery.meta import FrozenObject
from fakeapiserver.apimachinery.quantity import ZERO, Quantity, parse

Usage = dict[str, Quantity]
# What can be written as a quantity: `250m`, 3, 0.5.
Amount = str | int | float

# Seconds that a value is of.
WINDOW: Final = 15.0
# The usage of a container for which no value is set: it is idle.
_IDLE: Final = {"cpu": parse("1m"), "memory": parse("10Mi")}
# And a node, beside its pods.
_IDLE_NODE: Final = {"cpu": parse("100m"), "memory": parse("512Mi")}
# What a pod says of each of its containers, as KWOK reads it.
_ANNOTATIONS: Final = {"cpu": "kwok.x-k8s.io/usage-cpu", "memory": "kwok.x-k8s.io/usage-memory"}
_NANOS: Final = 10**9


class ContainerUsage(NamedTuple):
    name: str
    usage: Usage


class Series(NamedTuple):
    """A value of an external metric, and the labels that distinguish it from others."""

    labels: Mapping[str, str]
    value: Quantity


class _Where(Struct, frozen=True):
    """Objects; what is empty is any."""

    namespace: str
    name: str
    selector: Selector

    def matches(self, obj: FrozenObject) -> bool:
        metadata = obj["metadata"]
        return (
            self.namespace in ("", metadata.get("namespace", ""))
            and self.name in ("", metadata["name"])
            and self.selector.matches(metadata.get("labels") or {})
        )


class _PodRule(Struct, frozen=True):
    where: _Where
    container: str
    usage: Mapping[str, Quantity]
    missing: bool


class _NodeRule(Struct, frozen=True):
    where: _Where
    usage: Mapping[str, Quantity]
    missing: bool


class _CustomRule(Struct, frozen=True):
    """resource: `pods`, `services`, `ingresses.networking.k8s.io`. value: None: it has none."""

    metric: str
    resource: str
    where: _Where
    labels: Mapping[str, str]
    value: Quantity | None


class Values(Struct):
    """The values that were set. For the same thing, the last value counts. Methods raise ValueError for an invalid quantity or selector."""

    _pods: list[_PodRule] = field(default_factory=list)
    _nodes: list[_NodeRule] = field(default_factory=list)
    _custom: list[_CustomRule] = field(default_factory=list)
    # (namespace, "" for all; metric; labels)
    _external: dict[tuple[str, str, tuple[tuple[str, str], ...]], Quantity] = field(default_factory=dict)

    # ------------------------------------------------------------------------------- setting

    def set_pod(
        self,
        *,
        namespace: str = "",
        name: str = "",
        selector: str = "",
        container: str = "",
        usage: Mapping[str, Amount] | None = None,
        missing: bool = False,
    ) -> None:
        """Sets what each matching pod uses: in all, or in `container` alone. `missing`: the pods have no metrics."""
        where = _Where(namespace, name, parse_selector(selector))
        self._pods.append(_PodRule(where, container, _amounts(usage), missing))

    def set_node(
        self, *, name: str = "", selector: str = "", usage: Mapping[str, Amount] | None = None, missing: bool = False
    ) -> None:
        """Sets what each matching node uses. By default a node uses what its pods use, and a little more."""
        self._nodes.append(_NodeRule(_Where("", name, parse_selector(selector)), _amounts(usage), missing))

    def set_custom(
        self,
        metric: str,
        value: Amount | None,
        *,
        resource: str = "pods",
        namespace: str = "",
        name: str = "",
        selector: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """A metric of objects, each of them; None: they have it no more. `selector` selects pods; what isn't a pod is named."""
        if not metric:
            raise ValueError("a metric needs a name")
        if resource != "pods" and not name:
            raise ValueError(f"say which of the {resource} has the metric {metric}, by its name")
        where = _Where(namespace, name, parse_selector(selector))
        amount = None if value is None else _amount(metric, value)
        self._custom.append(_CustomRule(metric, resource, where, dict(labels or {}), amount))

    def set_external(
        self,
        metric: str,
        value: Amount | None,
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """A series of a metric, as autoscalers of the namespace (by default of all) see it; None: it is there no more."""
        if not metric:
            raise ValueError("a metric needs a name")
        key = (namespace, metric, tuple(sorted((labels or {}).items())))
        if value is None:
            self._external.pop(key, None)
        else:
            self._external[key] = _amount(metric, value)

    def clear(self) -> None:
        """Removes all values that were set."""
        for table in (self._pods, self._nodes, self._custom):
            table.clear()
        self._external.clear()

    # ------------------------------------------------------------------------------- looking

    def of_pod(self, pod: FrozenObject) -> Sequence[ContainerUsage] | None:
        """Returns what each of the pod's containers uses, or None if the pod has no metrics or doesn't run."""
        if (pod.get("status") or {}).get("phase") != "Running":
            return None
        rules = [rule for rule in self._pods if rule.where.matches(pod)]
        if rules and rules[-1].missing:
            return None
        names = [*_containers(pod["spec"])]
        resources = dict.fromkeys([*_IDLE, *(name for rule in rules for name in rule.usage)])
        usages: dict[str, Usage] = {name: {} for name in names}
        for resource in resources:
            for place, name in enumerate(names):
                pod_usage = _used(rules, pod, resource, name, place, len(names))
                if pod_usage is not None:
                    usages[name][resource] = pod_usage
        return [ContainerUsage(name, usage) for name, usage in usages.items()]

    def of_node(self, node: FrozenObject, pods: Iterable[FrozenObject]) -> Usage | None:
        """`pods`: those on it. None: nothing is known of it."""
        rules = [rule for rule in self._nodes if rule.where.matches(node)]
        if rules and rules[-1].missing:
            return None
        total: Usage = dict(_IDLE_NODE)
        for pod in pods:
            for container in self.of_pod(pod) or ():
                for name, quantity in container.usage.items():
                    total[name] = total.get(name, ZERO) + quantity
        for rule in rules:
            total |= rule.usage
        return total

    def of_object(self, metric: str, resource: str, obj: FrozenObject, series: Selector) -> Quantity | None:
        """A custom metric of it: the series that `series` selects, together. None: it has none."""
        by_labels: dict[tuple[tuple[str, str], ...], Quantity | None] = {}
        for rule in self._custom:
            if (rule.metric, rule.resource) == (metric, resource) and rule.where.matches(obj):
                by_labels[tuple(sorted(rule.labels.items()))] = rule.value
        chosen = [value for key, value in by_labels.items() if value is not None and series.matches(dict(key))]
        return _sum(chosen) if chosen else None

    def custom_metrics(self) -> Sequence[tuple[str, str]]:
        """(resource, metric) of all that were set, in order."""
        return sorted({(rule.resource, rule.metric) for rule in self._custom})

    def names(self, metric: str, resource: str, namespace: str) -> Sequence[str]:
        """The objects that have a custom metric, as far as they were named."""
        rules = [rule for rule in self._custom if (rule.metric, rule.resource) == (metric, resource)]
        return sorted({rule.where.name for rule in rules if rule.where.namespace in ("", namespace)} - {""})

    def external(self, metric: str, namespace: str, series: Selector) -> Sequence[Series]:
        """Returns the series of an external metric. A value for the namespace takes precedence over a value for all namespaces."""
        by_labels: dict[tuple[tuple[str, str], ...], Quantity] = {}
        for where in ("", namespace):
            by_labels |= {
                key: value for (place, name, key), value in self._external.items() if (place, name) == (where, metric)
            }
        return [Series(dict(key), by_labels[key]) for key in sorted(by_labels) if series.matches(dict(key))]

    def external_metrics(self) -> Sequence[str]:
        """The names of all that were set, in order."""
        return sorted({metric for _, metric, _ in self._external})


def _used(
    rules: Sequence[_PodRule], pod: FrozenObject, resource: str, container: str, place: int, containers: int
) -> Quantity | None:
    """Returns what a container of a pod uses, by the last rule that matches. The usage of a whole pod is divided among its containers."""
    for rule in reversed(rules):
        if rule.container in ("", container) and resource in rule.usage:
            amount = rule.usage[resource]
            return amount if rule.container else _part(amount, place, containers)
    said = (pod["metadata"].get("annotations") or {}).get(_ANNOTATIONS.get(resource, ""))
    if said is not None:
        try:
            return parse(said)
        except ValueError:
            pass
    return _IDLE.get(resource)


def _part(amount: Quantity, place: int, parts: int) -> Quantity:
    """Equal parts, which are the whole together: what can't be divided is the first one's."""
    if parts == 1:
        return amount
    nanos = int(amount.amount * _NANOS)
    unit = _NANOS if amount.amount.denominator == 1 and nanos // _NANOS >= parts else 1
    each = nanos // unit // parts * unit
    return Quantity(Fraction(nanos - each * (parts - 1) if place == 0 else each, _NANOS), amount.family)


def _containers(spec: FrozenObject) -> Iterable[str]:
    """Yields the containers that run as long as the pod does."""
    for container in spec["containers"]:
        yield container["name"]
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            yield container["name"]


def _sum(amounts: Sequence[Quantity]) -> Quantity:
    total = amounts[0]
    for amount in amounts[1:]:
        total = total + amount
    return total


def _amounts(usage: Mapping[str, Amount] | None) -> Usage:
    return {name: _amount(name, value) for name, value in (usage or {}).items()}


def _amount(name: str, value: Amount) -> Quantity:
    try:
        return parse(str(value))
    except ValueError as error:
        raise ValueError(f"{name}={value!r}: {error}") from None
