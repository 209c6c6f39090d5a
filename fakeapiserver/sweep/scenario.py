"""A scenario: what users do, step by step. Each step is one mapping of a YAML list.

steps:
- apply: web.yaml                      # files, folders or objects
- patch: widgets/web
  with: {spec: {size: 3}}
- scale: deployments/web
  to: 5
- delete: widgets/web
- wait: deployments/web
  for: Available
- advance: 1h
- stop: nodes/node-1              # and `start`: the node loses its power, and gets it back
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct, structs

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import yaml
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.controller_manager.manager import NotSettled
from fakeapiserver.server.projects import manifests
from fakeapiserver.sweep import clusters, invariants, surroundings
from fakeapiserver.sweep.invariants import Invariant
from fakeapiserver.sweep.surroundings import Surroundings

_WAIT_SECONDS: Final = 30.0
# How the titles of steps begin that only wait.
WAIT: Final = "wait "
# While a stopped clock goes on: the virtual seconds between two looks, and the real seconds until all is at rest and of a look.
_STEP_SECONDS: Final = 1.0
_SETTLE_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.01
# An object that no state has. It makes all later revisions greater.
_SHIFT: Final[Object] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "other-revisions", "namespace": "kube-node-lease"},
}


class Step(Struct, frozen=True):
    """A step: `title` for reports, and `run`, which raises what Cluster's methods raise. `applied`: the objects of a step that applies."""

    title: str
    run: Callable[[Cluster], object]
    applied: Sequence[Object] = ()

    @property
    def is_wait(self) -> bool:
        """Reports whether the step changes nothing."""
        return self.title.startswith(WAIT)


class Stage(Protocol):
    """The cluster in which a scenario plays, and where its steps begin and end."""

    @property
    def cluster(self) -> Cluster: ...

    def begin(self, title: str) -> None:
        """A step begins."""

    def end(self) -> None:
        """A step has ended: returns when the operator has come to rest. Does nothing outside of a step."""

    @property
    def is_blinded(self) -> bool:
        """Reports whether the operator can't know what the user does, so that waiting for it makes no sense."""


class Scenario(Struct, frozen=True):
    """The steps. `objects` are applied before the operator starts; `options` are those of Cluster.

    `namespace`: of objects that name none. `ignore`: fields that may differ, such as `configmaps.data.time`. `invariants` hold at every
    moment. `service_account`: the one whose rights the operator has, as `NAMESPACE/NAME`; "": it may do everything.
    """

    steps: Sequence[Step] = ()
    objects: Sequence[Object] = ()
    options: ClusterOptions = ClusterOptions()
    namespace: str = "default"
    ignore: Sequence[str] = ()
    invariants: Sequence[Invariant] = ()
    service_account: str = ""
    surroundings: Surroundings = Surroundings()

    @property
    def words(self) -> Sequence[str]:
        """Name the scenario: the same scenario has the same."""
        return [step.title for step in self.steps]

    @property
    def runs_alone(self) -> bool:
        """Reports whether it can't be played twice at the same time on this machine."""
        return self.surroundings.runs_alone

    @property
    def looks_between_steps(self) -> bool:
        """Reports whether the steps end by looking at what the operator has made of them."""
        return False

    def play(self, stage: Stage) -> None:
        """Does everything. Raises what the steps raise."""
        for step in self.steps:
            stage.begin(step.title)
            if not (step.is_wait and stage.is_blinded):
                _run(step, stage.cluster)
            stage.end()


def _run(step: Step, cluster: Cluster) -> None:
    """Does what a step is. A user tries again if a webhook can't be called: the operator that serves it may have been killed just now."""
    try:
        step.run(cluster)
    except StatusError as error:
        if _UNREACHABLE not in error.message:
            raise
        with suppress(TimeoutError, ValueError):
            cluster.webhooks.wait(_PATIENCE)
        step.run(cluster)


def read(path: Path) -> Scenario:
    """The scenario in a YAML file; the paths in it are relative to its folder. Raises OSError, ValueError with one sentence."""
    try:
        document = yaml.decode(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return of_document(document, path.parent, str(path))


def of_document(document: Any, folder: Path, name: str) -> Scenario:
    """The scenario that a document describes. Raises OSError, ValueError with one sentence that begins with `name`."""
    if not isinstance(document, Mapping):
        raise ValueError(
            f"{name} is no scenario: it needs `steps`, a list of apply, patch, scale, delete, wait and advance"
        )
    unknown = sorted(map(str, document.keys() - _FIELDS))
    if unknown:
        raise ValueError(f"{name}: there is no {unknown[0]!r} in a scenario: it has {', '.join(sorted(_FIELDS))}")
    steps = document.get("steps")
    if not isinstance(steps, list) or not steps:
        raise ValueError(f"{name} needs `steps`, a list of the things that users do")
    namespace = _text(document, "namespace", name) or "default"
    options, around = surroundings.read(document, folder, name)
    return Scenario(
        [_step(step, f"{name}: step {number}", folder, namespace) for number, step in enumerate(steps, 1)],
        _objects(document.get("objects") or [], folder, name),
        options,
        namespace,
        _texts(document, "ignore", name),
        [_invariant(each, name) for each in _list(document, "invariants", name)],
        _service_account(document, name),
        around,
    )


_FIELDS: Final = (
    frozenset(("serviceAccount", "steps", "objects", "namespace", "ignore", "invariants")) | surroundings.FIELDS
)
# In the message of a request whose webhook couldn't be called, and the seconds for which a user waits for its server.
_UNREACHABLE: Final = "failed calling webhook"
_PATIENCE: Final = 15.0
_INVARIANT: Final = ("name", "resource", "that")
# Each step by its first word, with the other fields that it takes.
_STEPS: Final[Mapping[str, frozenset[str]]] = {
    "apply": frozenset(),
    "patch": frozenset(("with",)),
    "scale": frozenset(("to",)),
    "delete": frozenset(),
    "wait": frozenset(("for", "timeout")),
    "advance": frozenset(),
    "stop": frozenset(),
    "start": frozenset(),
}
_NODE_STEPS: Final = ("stop", "start")


def _invariant(document: Any, name: str) -> Invariant:
    if not isinstance(document, Mapping) or document.keys() != {*_INVARIANT}:
        raise ValueError(
            f"{name}: an invariant has a name, a resource such as pods, and `that`, an expression over `objects`"
        )
    title, resource, expression = (_text(document, field, name) for field in _INVARIANT)
    try:
        return invariants.of_cel(title, resource, expression)
    except ValueError as error:
        problem = str(error).splitlines()[0].removeprefix("compilation failed: ERROR: ")
        raise ValueError(f"{name}: the invariant {title!r} is no CEL expression over `objects`: {problem}") from None


def _service_account(document: Mapping[str, Any], name: str) -> str:
    account = _text(document, "serviceAccount", name)
    if account and account.count("/") != 1:
        raise ValueError(f"{name}: serviceAccount is a namespace and a name such as system/manager, not {account!r}")
    return account


def _list(mapping: Mapping[str, Any], field: str, name: str) -> list[Any]:
    value = mapping.get(field) or []
    if not isinstance(value, list):
        raise ValueError(f"{name}: {field} is a list, not {value!r}")
    return value


def _step(step: Any, name: str, folder: Path, default: str) -> Step:
    verbs = [verb for verb in _STEPS if isinstance(step, Mapping) and verb in step]
    if len(verbs) != 1:
        raise ValueError(f"{name} must be one of {', '.join(_STEPS)}, as in `delete: widgets/web`")
    verb = verbs[0]
    unknown = sorted(map(str, step.keys() - _STEPS[verb] - {verb, "namespace"}))
    if unknown:
        raise ValueError(f"{name}: {verb} takes no {unknown[0]!r}")
    missing = sorted(_STEPS[verb] - {"timeout"} - step.keys())
    if missing:
        raise ValueError(f"{name}: {verb} needs `{missing[0]}`")
    namespace = _text(step, "namespace", name) or default
    if verb == "apply":
        objects = _objects(step[verb], folder, name)
        return applying(objects, namespace)
    target = _text(step, verb, name)
    if verb == "advance":
        seconds = _seconds(target, name)
        return Step(f"advance {target}", lambda cluster: cluster.clock.advance(seconds))
    if verb in _NODE_STEPS:
        return _on_node(verb, target, name)
    if "/" not in target:
        raise ValueError(f"{name}: {verb} needs an object such as widgets/web, not {target!r}")
    return Step(f"{verb} {target}", _on_object(verb, target, step, namespace, name))


def _on_node(verb: str, target: str, name: str) -> Step:
    """Pulls a node's plug, or puts it back."""
    resource, _, node = target.partition("/")
    if resource not in ("node", "nodes") or not node:
        raise ValueError(f"{name}: {verb} needs a simulated node such as nodes/node-1, not {target!r}")
    if verb == "stop":
        return Step(f"stop {target}", lambda cluster: cluster.nodes.stop(node))
    return Step(f"start {target}", lambda cluster: cluster.nodes.start(node))


def _on_object(
    verb: str, target: str, step: Mapping[str, Any], namespace: str, name: str
) -> Callable[[Cluster], object]:
    if verb == "delete":
        return lambda cluster: _delete(cluster, target, namespace)
    if verb == "wait":
        condition, timeout = _text(step, "for", name), _seconds(step.get("timeout") or _WAIT_SECONDS, name)
        return lambda cluster: _await(cluster, target, condition, namespace, timeout)
    if verb == "scale":
        size = step["to"]
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ValueError(f"{name}: scale needs a number of replicas as `to`, not {size!r}")
        return lambda cluster: cluster.patch(target, {"spec": {"replicas": size}}, namespace=namespace)
    change = step["with"]
    if not isinstance(change, Mapping):
        raise ValueError(f"{name}: patch needs the fields to change as `with`, such as {{spec: {{size: 3}}}}")
    return lambda cluster: cluster.patch(target, dict(change), namespace=namespace)


def _delete(cluster: Cluster, target: str, namespace: str) -> None:
    """Deletes an object and waits until it is gone, as kubectl does."""
    cluster.delete(target, namespace=namespace)
    _await(cluster, target, "delete", namespace, _WAIT_SECONDS)


def _await(cluster: Cluster, target: str, condition: str, namespace: str, timeout: float) -> None:
    """Waits as `Cluster.wait` does. A clock that is stopped goes on meanwhile, so that what is due happens: an operator's next try, for
    example."""
    while cluster.clock.is_stopped and timeout > 0:
        with suppress(NotSettled):
            cluster.settle(timeout=_SETTLE_SECONDS)
        try:
            cluster.wait(target, condition, namespace=namespace, timeout=_LOOK_SECONDS)
        except TimeoutError:
            cluster.clock.advance(_STEP_SECONDS)
            timeout -= _STEP_SECONDS
        else:
            return
    cluster.wait(target, condition, namespace=namespace, timeout=max(timeout, _LOOK_SECONDS))


def with_other_chances(scenario: Scenario) -> Scenario:
    """The scenario in clusters with other uids, generated names, addresses and revisions: all that follows from them is no difference."""
    return structs.replace(
        scenario,
        objects=[*scenario.objects, _SHIFT],
        options={**scenario.options, "seed": clusters.OTHER_SEED},
    )


def applying(objects: Sequence[Object], namespace: str) -> Step:
    """A step that applies objects."""
    title = f"apply {', '.join(map(manifests.title, objects))}"
    return Step(title, lambda cluster: cluster.apply(objects, namespace=namespace, force=True), objects)


def _objects(sources: Any, folder: Path, name: str) -> list[Object]:
    """The objects that files, folders and mappings hold. Raises OSError, ValueError."""
    several = sources if isinstance(sources, list) else [sources]
    found: list[Object] = []
    for source in several:
        if not isinstance(source, str | Mapping):
            raise ValueError(f"{name}: {source!r} is neither a path nor an object")
        found += manifests.read_all(dict(source) if isinstance(source, Mapping) else folder / source)
    return found


def _text(mapping: Mapping[str, Any], field: str, name: str) -> str:
    value = mapping.get(field) or ""
    if not isinstance(value, str):
        raise ValueError(f"{name}: {field} is a text, not {value!r}")
    return value


def _texts(mapping: Mapping[str, Any], field: str, name: str) -> list[str]:
    value = mapping.get(field) or []
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in several):
        raise ValueError(f"{name}: {field} is a list of texts, not {value!r}")
    return several


def _seconds(value: Any, name: str) -> float:
    try:
        return parse_duration(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
