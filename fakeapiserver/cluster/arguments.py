"""Checks of the options of `Cluster(…)`: accepts values whose meaning is plain (`nodes="3"`, `controllers="none"`),
and refuses others in one
sentence that names the option, the value and the choices."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from fakeapiserver.apis.feature_gates import FeatureGates, feature_gates
from fakeapiserver.apis.recorded import NEWEST, known_versions, minor_version
from fakeapiserver.apis.runtime_config import runtime_config
from fakeapiserver.apis.scheme import group_versions
from fakeapiserver.controller_manager.descriptor import AVAILABLE, canonical
from fakeapiserver.server.options import read_only
from fakeapiserver.server.options.config import MEDIA_TYPES, SYNCS, Config
from fakeapiserver.server.projects import manifests
from fakeapiserver.spelling import did_you_mean
from fakeapiserver.storage.etcd.addresses import address_of

_LAST_PORT: Final = 65535
_MODES: Final = ("AlwaysAllow", "AlwaysDeny", "Node", "RBAC")
_METRICS: Final = ("resource", "custom", "external", "*")
_BOOLEANS: Final = {"true": True, "false": False}
_CONFIGURATIONS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def read(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options in the form that Config has. TypeError for an unknown option or a value of a type that no option takes, ValueError
    for any other wrong value, OSError for files that aren't there."""
    for name in options:
        if name not in _READERS:
            raise TypeError(
                f"Cluster() has no option {name!r}{did_you_mean(name, _READERS)}: there are {_listed(_READERS)}"
            )
    read = {name: _READERS[name](name, value) for name, value in options.items()}
    _check_switches(read)
    return read


def as_names(name: str, value: Any) -> tuple[str, ...]:
    """`["a", "b"]`, or `a,b` as the flags have it."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a name or a list of names, not {value!r}")
    names = tuple(value)
    for item in names:
        if not isinstance(item, str) or not item:
            error = ValueError if item == "" else TypeError
            raise error(f"{name} must be a list of names, but has {item!r}")
    return names


def _whole_number(name: str, value: Any, most: int | None = None) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < 0 or (most is not None and value > most):
        limits = "0 or more" if most is None else f"a number from 0 to {most}"
        raise ValueError(f"{name} must be {limits}, not {value}")
    return value


def _time(name: str, value: Any) -> float:
    """Seconds since the epoch, from these, a text such as 2026-01-01T00:00:00Z, or a datetime with a time zone."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{name} must be a time such as 2026-01-01T00:00:00Z, not {value!r}") from None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(
                f"{name} must have a time zone, as in 2026-01-01T00:00:00Z, which {value.isoformat()} lacks"
            )
        return value.timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a time such as 2026-01-01T00:00:00Z, or seconds since 1970, not {value!r}")
    return float(value)


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return value


def _chosen(name: str, value: Any, choices: Collection[str]) -> tuple[str, ...]:
    """Names out of `choices`, each once."""
    names = as_names(name, value)
    for item in names:
        if item not in choices:
            raise ValueError(f"{name} has no {item!r}{did_you_mean(item, choices)}: the choices are {_listed(choices)}")
        if names.count(item) > 1:
            raise ValueError(f"{name} has {item!r} more than once")
    return names


def _modes(name: str, value: Any) -> tuple[str, ...]:
    names = _chosen(name, value, _MODES)
    if not names:
        raise ValueError(f"{name} must have at least one mode, not {value!r}: the choices are {_listed(_MODES)}")
    return names


def _controllers(name: str, value: Any, *, patterns: bool) -> tuple[str, ...]:
    """Names or aliases; with `patterns` also `*`, `none`, `-name`."""
    names = as_names(name, value)
    for item in names:
        if patterns and item in ("*", "none"):
            continue
        try:
            canonical(item.removeprefix("-") if patterns else item)
        except ValueError:
            choices = '"*", "none", a name, or "-name" for all but this one' if patterns else "the controllers' names"
            raise ValueError(
                f"{name} has no controller {item!r}{did_you_mean(item.removeprefix('-'), AVAILABLE)}: the choices are {choices}"
            ) from None
    return names


def _version(name: str, value: Any) -> str:
    """`"1.33"`, `"v1.33"`, `"1.33.5"` or the number 1.33, of which there is only one reading while no minor ends with a zero."""
    if isinstance(value, bool) or not isinstance(value, str | float):
        raise TypeError(f"{name} must be a version such as {NEWEST.removeprefix('v')!r}, not {value!r}")
    try:
        return minor_version(str(value).strip())
    except ValueError:
        raise ValueError(f"{name} has no {value!r}: the choices are {_listed(known_versions())}") from None


def _gates(name: str, value: Any) -> dict[str, bool]:
    if not isinstance(value, Mapping):
        raise TypeError(f'{name} must be a dict such as {{"WatchList": False}}, not {value!r}')
    gates = {}
    for gate, switch in value.items():
        on = _BOOLEANS.get(switch.lower()) if isinstance(switch, str) else switch
        if not isinstance(gate, str) or not isinstance(on, bool):
            raise TypeError(f"{name}: {gate} must be True or False, not {switch!r}")
        gates[gate] = on
    return gates


def _runtime_config(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise TypeError(f'{name} must be a dict such as {{"batch/v1": "false"}}, not {value!r}')
    switches = {}
    for key, switch in value.items():
        text = str(switch).lower() if isinstance(switch, bool | str) else None
        if not isinstance(key, str) or text not in ("", *_BOOLEANS):
            raise TypeError(f'{name}: {key} must be "true" or "false", not {switch!r}')
        switches[key] = text
    return switches


def _check_switches(options: Mapping[str, Any]) -> None:
    """Gates and groups depend on the version. ValueError in upstream's words."""
    version = options.get("kubernetes_version", NEWEST)
    if gates := options.get("feature_gates"):
        known = [gate for gate, _, _ in FeatureGates(version).stages()]
        for gate in gates:
            if gate not in known:
                raise ValueError(f"feature_gates has no {gate!r} in Kubernetes {version}{did_you_mean(gate, known)}")
        try:
            feature_gates(version, gates)
        except ValueError as error:
            raise ValueError(f"feature_gates: {error}") from None
    if switches := options.get("runtime_config"):
        versions = group_versions(version)
        try:
            runtime_config(switches, versions)
        except ValueError as error:
            unknown = next((key for key in switches if not any(key == str(known) for known in versions)), "")
            raise ValueError(f"runtime_config: {error}{did_you_mean(unknown, map(str, versions))}") from None


def _folder(name: str, value: Any) -> Path:
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise TypeError(f"{name} must be the path of a folder, not {value!r}")
    return Path(value)


def _file(name: str, value: Any) -> Path:
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise TypeError(f"{name} must be the path of a file, not {value!r}")
    path = Path(value)
    if not path.is_file():
        raise FileNotFoundError(f"{name}: there is no file {str(path)!r}")
    return path


def _file_name(name: str, value: Any) -> str:
    return str(_file(name, value))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} must be a text, not {value!r}")
    return value


def _endpoints(name: str, value: Any) -> tuple[str, ...]:
    endpoints = as_names(name, value)
    if not endpoints:
        raise ValueError(f"{name} must have at least one endpoint, such as http://127.0.0.1:2379")
    for endpoint in endpoints:
        try:
            address_of(endpoint)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return endpoints


def check_state(config: Config, given: Collection[str]) -> None:
    """Checks the options that say where the state is; `given` are their names. Raises ValueError if two contradict each other."""
    if config.etcd.servers and (other := [name for name in ("data_dir", "sync") if name in given]):
        raise ValueError(f"etcd_servers says where the state is: leave {other[0]} out")
    for name in given:
        if name.startswith("etcd_") and not config.etcd.servers:
            raise ValueError(f"{name} is for an etcd: name its endpoints by etcd_servers")
    if config.read_only:
        read_only.check(config, lambda flag: flag.replace("-", "_"))


def _one_of(name: str, value: Any, choices: Collection[str]) -> str:
    [choice] = _chosen(name, [value], choices)
    return choice


def _sources(name: str, value: Any) -> Any:
    """Files, folders and objects, unread."""
    several = [value] if isinstance(value, str | os.PathLike | Mapping) else value
    if not isinstance(several, Sequence) or isinstance(several, bytes | bytearray):
        raise TypeError(f"{name} must be a file, a folder, an object, or a list of these, not {value!r}")
    for item in several:
        if not isinstance(item, str | os.PathLike | Mapping) or not item:
            raise TypeError(f"{name} must be files, folders or objects, but has {item!r}")
    return value


def _objects_of(name: str, value: Any, *, kinds: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    """The objects of these kinds. OSError, ValueError."""
    if not (sources := _sources(name, value)):
        return ()
    try:
        objects = manifests.read(sources, *kinds)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    except OSError as error:
        raise type(error)(f"{name}: {error}") from None
    if not objects:
        where = f"the object {value!r}" if isinstance(value, Mapping) else repr(value)
        raise ValueError(f"{name}: there is no {' or '.join(kinds)} in {_shortened(where)}")
    return objects


def _shortened(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _listed(choices: Iterable[str]) -> str:
    return ", ".join(choices)


_port = partial(_whole_number, most=_LAST_PORT)

_READERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "port": _port,
    "authorization_mode": _modes,
    "controllers": partial(_controllers, patterns=True),
    "step_controllers": partial(_controllers, patterns=False),
    "nodes": _whole_number,
    "stages": partial(_objects_of, kinds=("Stage",)),
    "local_storage": _boolean,
    "cloud_storage": _boolean,
    "load_balancers": _boolean,
    "metrics": partial(_chosen, choices=_METRICS),
    "kubernetes_version": _version,
    "feature_gates": _gates,
    "runtime_config": _runtime_config,
    "crds": partial(_objects_of, kinds=("CustomResourceDefinition",)),
    "objects": _sources,
    "webhooks": partial(_objects_of, kinds=_CONFIGURATIONS),
    "webhook_port": _port,
    "etcd_servers": _endpoints,
    "etcd_prefix": _text,
    "etcd_cafile": _file_name,
    "etcd_certfile": _file_name,
    "etcd_keyfile": _file_name,
    "storage_media_type": partial(_one_of, choices=MEDIA_TYPES),
    "encryption_provider_config": _file,
    "read_only": _boolean,
    "data_dir": _folder,
    "sync": partial(_one_of, choices=SYNCS),
    "seed": _whole_number,
    "stopped_at": _time,
    "kept_requests": _whole_number,
    "kept_request_bytes": _whole_number,
    "ui": _boolean,
}
