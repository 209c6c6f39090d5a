"""What a client is warned of in pods and templates that are accepted all the same.

Upstream: pkg/api/pod/warnings.go, the frequent part.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from fakeapiserver.apimachinery.field import Path, go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.resource_list import is_whole

# Volume source -> since when it is no longer meant to be used.
_DEPRECATED_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SHOWN: Final = {"storageos": "storageOS"}
_BYTES: Final = ("memory", "ephemeral-storage")


def pod_spec_warnings(spec: Object, path: Path) -> list[str]:
    """`path` is the spec's own: `spec` of a pod, `spec.template.spec` of a deployment."""
    return [*_spread(spec, path), *_volumes(spec, path), *_twice_named(spec, path), *_containers(spec, path)]


def _spread(spec: Object, path: Path) -> Iterator[str]:
    for i, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if "labelSelector" not in constraint:
            at = path.child("topologySpreadConstraints").index(i).child("labelSelector")
            yield f"{at}: a null labelSelector results in matching no pod"


def _volumes(spec: Object, path: Path) -> Iterator[str]:
    for i, volume in enumerate(spec.get("volumes") or ()):
        for source, text in _DEPRECATED_VOLUMES.items():
            if source in volume:
                yield f"{path.child('volumes').index(i).child(_SHOWN.get(source, source))}: {text}"


def _twice_named(spec: Object, path: Path) -> Iterator[str]:
    for name, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen = set()
        for i, item in enumerate(spec.get(name) or ()):
            value = item.get(key, "")
            if value in seen:
                yield f"{path.child(name).index(i).child(key)}: duplicate {key} {go_quote(value)}"
            seen.add(value)
    for i, item in enumerate(spec.get("imagePullSecrets") or ()):
        if not item.get("name"):
            yield f'{path.child("imagePullSecrets").index(i).child("name")}: invalid empty name ""'


def _containers(spec: Object, path: Path) -> Iterator[str]:
    placed = [
        (container, path.child(name).index(i))
        for name in ("initContainers", "containers")
        for i, container in enumerate(spec.get(name) or ())
    ]
    for container, at in placed:
        yield from _fractions(container.get("resources") or {}, at.child("resources"))
        yield from _hidden_variables(container.get("env") or (), at.child("env"))
    yield from _ports(
        (port, at.child("ports").index(i)) for c, at in placed for i, port in enumerate(c.get("ports") or ())
    )


def _fractions(resources: Object, path: Path) -> Iterator[str]:
    for name in _BYTES:
        for kind in ("limits", "requests"):
            text = (resources.get(kind) or {}).get(name, "0")
            if not is_whole(text):
                yield f"{path.child(kind).key(name)}: fractional byte value {go_quote(text)} is invalid, must be an integer"


def _hidden_variables(variables: Iterable[Object], path: Path) -> Iterator[str]:
    seen = set()
    for i, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        if name in seen and ("valueFrom" in variable or value == reference or reference not in value):
            text = f"hides previous definition of {go_quote(name)}, which may be dropped when using apply"
            yield f"{path.index(i)}: {text}"
        seen.add(name)


def _ports(placed: Iterable[tuple[Object, Path]]) -> Iterator[str]:
    known: list[tuple[Object, Path]] = []
    named: dict[str, Path] = {}
    of_names = []
    for port, at in placed:
        for other, other_at in known:
            if any(port.get(key) != other.get(key) for key in ("containerPort", "protocol")):
                continue
            if text := _overlap(port, other):
                yield f"{at}: {text} port definition with {other_at}"
        known.append((port, at))
        name = port.get("name")
        if name in named:
            first = named[name]
            text = f"services and probes that select ports by name will use {first}"
            of_names.append(f"{at}: duplicate port name {go_quote(name)} with {first}, {text}")
        elif name:
            named[name] = at
    yield from of_names


def _overlap(port: Object, other: Object) -> str:
    same_host_port = port.get("hostPort") == other.get("hostPort")
    if same_host_port and port.get("hostIP") == other.get("hostIP"):
        return "duplicate"
    if not port.get("hostPort") or not other.get("hostPort"):
        return "overlapping"
    return "dangerously ambiguous" if same_host_port and bool(port.get("hostIP")) != bool(other.get("hostIP")) else ""
