"""The environment of a container's process in a simulated pod: variables and mounted files. Pure.

Upstream: pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables, podFieldSelectorRuntimeValue),
pkg/volume/{configmap,secret,downwardapi,
projected}. Services' variables, service account tokens and other volumes' files aren't simulated.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import parse
from fakeapiserver.component_helpers.objects import labels_of
from fakeapiserver.nodes.node import CAPACITY
from fakeapiserver.nodes.shell.events import Surroundings

# ConfigMaps and Secrets of the pod's namespace by (kind, name).
Key = tuple[str, str]
Objects = Mapping[Key, Object]
CONFIG_MAP: Final = "ConfigMap"
SECRET: Final = "Secret"
_REFERENCE: Final = re.compile(r"\$(\$|\(([^()]*)\))")
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
_READS: Final = re.compile(r"\$|\benv\b|\bprintenv\b")


def references(pod: Object, spec: Object, words: Sequence[str]) -> Iterator[Key]:
    """The ConfigMaps and Secrets that a command of the container can see."""
    text = " ".join(words)
    if _READS.search(text):
        for row in spec.get("env") or ():
            yield from _named(row.get("valueFrom") or {}, "configMapKeyRef", "secretKeyRef")
        for row in spec.get("envFrom") or ():
            yield from _named(row, "configMapRef", "secretRef")
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for mount in spec.get("volumeMounts") or ():
        if mount["mountPath"].rstrip("/") in text and mount["name"] in volumes:
            for source in _sources(volumes[mount["name"]]):
                yield from _named(source, "configMap", "secret")


def surroundings_of(pod: Object, spec: Object, objects: Objects) -> Surroundings:
    """Returns the environment of the container's processes. Missing objects count as empty."""
    files: dict[str, str] = {}
    directories: list[str] = []
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for mount in spec.get("volumeMounts") or ():
        path = mount["mountPath"].rstrip("/") or "/"
        entries = dict(_entries(volumes.get(mount["name"], {}), pod, spec, objects))
        sub_path = str(mount.get("subPath", "")).strip("/")
        if sub_path in entries:
            files[path] = entries[sub_path]
            continue
        directories.append(path)
        prefix = f"{sub_path}/" if sub_path else ""
        files |= {f"{path}/{name[len(prefix) :]}": text for name, text in entries.items() if name.startswith(prefix)}
    return Surroundings(
        tuple(environment_of(pod, spec, objects).items()), tuple(files.items()), tuple(directories), _host(pod)
    )


def environment_of(pod: Object, spec: Object, objects: Objects) -> dict[str, str]:
    """The container's variables: envFrom, then env, of which each may refer to those before it."""
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOSTNAME": _host(pod),
        "HOME": "/root",
    }
    for row in spec.get("envFrom") or ():
        for key in _named(row, "configMapRef", "secretRef"):
            environment |= {f"{row.get('prefix', '')}{name}": text for name, text in _data(objects, key).items()}
    for row in spec.get("env") or ():
        value = expanded(row.get("value") or "", environment)
        if (source := row.get("valueFrom")) is not None:
            known = _value_from(source, pod, spec, objects)
            if known is None:
                continue
            value = known
        environment[row["name"]] = value
    return environment


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` in place of the variable's value; `$$` is a dollar sign (upstream: third_party/forked/golang/expansion)."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] == "$" else variables.get(match[2], match[0])

    return _REFERENCE.sub(value, text)


def _named(row: Mapping[str, Any], config_map: str, secret: str) -> Iterator[Key]:
    for kind, field in ((CONFIG_MAP, config_map), (SECRET, secret)):
        source = row.get(field) or {}
        if name := source.get("name") or source.get("secretName"):
            yield kind, name


def _value_from(source: Mapping[str, Any], pod: Object, spec: Object, objects: Objects) -> str | None:
    """Returns a variable's value, or None if it isn't set."""
    if (row := source.get("fieldRef")) is not None:
        return _field(pod, row["fieldPath"])
    if (row := source.get("resourceFieldRef")) is not None:
        return _resource(pod, spec, row)
    row = source.get("configMapKeyRef") or source.get("secretKeyRef") or {}
    keys = _named(source, "configMapKeyRef", "secretKeyRef")
    return next((_data(objects, key).get(row.get("key", "")) for key in keys), None)


def _field(pod: Object, path: str) -> str:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    if (match := _KEYED.fullmatch(path)) is not None:
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    match path:
        case "metadata.name" | "metadata.namespace" | "metadata.uid":
            return str(metadata.get(path.partition(".")[2], ""))
        case "metadata.labels" | "metadata.annotations":
            rows = labels_of(pod) if path.endswith("labels") else metadata.get("annotations") or {}
            return "\n".join(f'{name}="{rows[name]}"' for name in sorted(rows))
        case "spec.nodeName" | "spec.serviceAccountName":
            return str(spec.get(path.partition(".")[2], ""))
        case "status.hostIP" | "status.podIP":
            return str(status.get(path.partition(".")[2], ""))
        case "status.hostIPs" | "status.podIPs":
            return ",".join(row["ip"] for row in status.get(path.partition(".")[2]) or ())
    return ""


def _resource(pod: Object, spec: Object, row: Mapping[str, Any]) -> str:
    """A request or limit in units of the divisor, rounded up; an unset limit is what the node has."""
    name = row.get("containerName")
    owner = next((one for one in pod["spec"]["containers"] if one["name"] == name), spec)
    kind, _, resource = str(row["resource"]).partition(".")
    resources = owner.get("resources") or {}
    amount = (resources.get(kind) or {}).get(resource) or (CAPACITY.get(resource, "0") if kind == "limits" else "0")
    divisor = parse(str(row.get("divisor") or "0"))
    value = parse(amount).value / (divisor.value or 1)
    return str(-int(-value // 1))


def _sources(volume: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The volume itself, or the sources that it projects."""
    yield from (volume.get("projected") or {}).get("sources") or (volume,)


def _entries(volume: Mapping[str, Any], pod: Object, spec: Object, objects: Objects) -> Iterator[tuple[str, str]]:
    """The files of a volume: path and text."""
    for source in _sources(volume):
        for row in (source.get("downwardAPI") or {}).get("items") or ():
            resource = row.get("resourceFieldRef")
            text = _resource(pod, spec, resource) if resource else _field(pod, row["fieldRef"]["fieldPath"])
            yield row["path"], text
        row = source.get("configMap") or source.get("secret") or {}
        for key in _named(source, "configMap", "secret"):
            data = _data(objects, key)
            items = row.get("items")
            if items is None:
                yield from data.items()
            else:
                yield from ((item["path"], data[item["key"]]) for item in items if item["key"] in data)


def _data(objects: Objects, key: Key) -> dict[str, str]:
    """The texts of a ConfigMap or Secret."""
    obj = objects.get(key, {})
    data: dict[str, str] = obj.get("data") or {}
    if key[0] == SECRET:
        return {name: _decoded(text) for name, text in data.items()}
    return {**{name: _decoded(text) for name, text in (obj.get("binaryData") or {}).items()}, **data}


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode("utf-8", "surrogateescape")
    except binascii.Error:
        return ""


def _host(pod: Object) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])
