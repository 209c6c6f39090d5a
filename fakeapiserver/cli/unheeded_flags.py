"""Flags of kube-apiserver's that change nothing that a client sees here: what etcd is asked for and in which encoding, caches, other
servers of the cluster. Their values are checked all the same, in upstream's words.

Upstream: k8s.io/apiserver/pkg/server/options/etcd.go,
pkg/controlplane/apiserver/options/validation.go.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.cli.arguments import (
    InvalidArgument,
    UsageError,
    read_boolean,
    read_duration,
    read_integer,
    read_list,
)
from fakeapiserver.server.options.config import Config
from fakeapiserver.storage.encryption import configuration

_READERS: Final = {"bool": read_boolean, "int": read_integer, "duration": read_duration}
_MEDIA_TYPES: Final = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
_OVERRIDES: Final = (
    "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon "
    "separated"
)
_OVERRIDE: Final = re.compile("[^/#]*/[^/#]*#[^;#]+(;[^;#]+)*")
_INTEGER: Final = re.compile("[+-]?[0-9]+")
_PEERS: Final = ("peer-ca-file", "peer-advertise-ip", "peer-advertise-port")
_INTEROPERABILITY: Final = "UnknownVersionInteroperabilityProxy"
# The times of coordinated leader election, each greater than the next; seconds by default.
_LEADERSHIP: Final = {"lease-duration": 15.0, "renew-deadline": 10.0, "retry-period": 2.0}
# What --runtime-config mustn't turn off while flow control is on; what is said first counts.
_FLOW_CONTROL: Final = ("flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all")
UNENCRYPTED: Final = "--encryption-provider-config has no effect here: only objects in an etcd are encrypted"


def check_value(name: str, value: str, flag_type: str) -> None:
    """UsageError for a value that can't be read."""
    if (read := _READERS.get(flag_type)) is None:
        return
    try:
        read(value)
    except InvalidArgument as error:
        raise UsageError(f"invalid argument {go_quote(value)} for {go_quote(f'--{name}')} flag: {error}") from None


def check(given: Mapping[str, str], gates: FeatureGates) -> None:
    """`given`: flag -> its text. UsageError for all that is wrong."""
    errors = list(_emulation_errors(given, gates)) or [
        *_storage_errors(given),
        *_flow_control_errors(given),
        *_peer_errors(given, gates),
        *_leadership_errors(given),
    ]
    if errors:
        raise UsageError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def encryption_warnings(config: Config) -> list[str]:
    """Raises UsageError, in upstream's words, if the file that encrypts is invalid."""
    etcd = config.etcd
    if etcd.encryption_config is None:
        return []
    try:
        configuration.parsed(configuration.read(etcd.encryption_config), str(etcd.encryption_config))
    except ValueError as error:
        raise UsageError(str(error)) from None
    return [] if etcd.servers or etcd.starts or config.load is not None else [UNENCRYPTED]


def _storage_errors(given: Mapping[str, str]) -> Iterator[str]:
    if given.get("storage-backend", "") not in ("", "etcd3"):
        yield "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'"
    if not all(map(_OVERRIDE.fullmatch, read_list(given.get("etcd-servers-overrides", "")))):
        yield _OVERRIDES
    reloads = "encryption-provider-config-automatic-reload"
    if read_boolean(given.get(reloads, "false")) and not given.get("encryption-provider-config"):
        yield f"--{reloads} must be set with --encryption-provider-config"
    media_type = given.get("storage-media-type", "")
    if media_type and media_type not in _MEDIA_TYPES:
        yield f"--storage-media-type {go_quote(media_type)} invalid, allowed values: {', '.join(_MEDIA_TYPES)}"
    for text in read_list(given.get("watch-cache-sizes", "")):
        if problem := _cache_size_problem(text):
            yield f"{problem}: {text}"
            break


def _cache_size_problem(text: str) -> str:
    _, separator, size = text.partition("#")
    if not separator or "#" in size:
        return "invalid value of watch cache size"
    if not _INTEGER.fullmatch(size):
        return "invalid size of watch cache size"
    return "watch cache size cannot be negative" if int(size) < 0 else ""


def _emulation_errors(given: Mapping[str, str], gates: FeatureGates) -> Iterator[str]:
    for flag, field in (
        ("emulation-forward-compatible", "EmulationForwardCompatible"),
        ("runtime-config-emulation-forward-compatible", "RuntimeConfigEmulationForwardCompatible"),
    ):
        if read_boolean(given.get(flag, "false")) and gates.emulated in ("", gates.version):
            same = "cannot be set to true if the emulation version is the same as the binary version"
            yield f"ServerRunOptions.{field} {same}"


def _flow_control_errors(given: Mapping[str, str]) -> Iterator[str]:
    if not read_boolean(given.get("enable-priority-and-fairness", "true")):
        return
    said = dict(item.partition("=")[::2] for item in read_list(given.get("runtime-config", "")))
    for key in _FLOW_CONTROL:
        if said.get(key) == "false":
            yield f"--runtime-config={key}=false conflicts with --enable-priority-and-fairness=true"
        if said.get(key) in ("true", "false"):
            return


def _peer_errors(given: Mapping[str, str], gates: FeatureGates) -> Iterator[str]:
    for flag in _PEERS:
        if given.get(flag) and not gates.enabled(_INTEROPERABILITY):
            yield f"--{flag} requires {_INTEROPERABILITY} feature to be turned on"


def _leadership_errors(given: Mapping[str, str]) -> Iterator[str]:
    times = {
        name: read_duration(given.get(f"coordinated-leadership-{name}", f"{default}s"))
        for name, default in _LEADERSHIP.items()
    }
    for longer, shorter in pairwise(times):
        if times[longer] <= times[shorter]:
            yield f"--coordinated-leadership-{longer} must be greater than --coordinated-leadership-{shorter}"
