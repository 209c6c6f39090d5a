"""kube-apiserver's flags: those that have an effect, those that are accepted with a warning, and refusals of all others.

Upstream: cmd/kube-apiserver/app/options; the names and types are recorded in apis/versions/<version>/flags.json.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery import go_csv
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import atoi, parse_bool
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.apis import feature_gates
from fakeapiserver.apis.recorded import NEWEST, minor_version, preview_warnings, read_table
from fakeapiserver.cli import unheeded_flags
from fakeapiserver.cli.arguments import (
    LAST_PORT,
    OUTPUTS,
    InvalidArgument,
    UsageError,
    address,
    choice,
    count,
    level,
    paths,
    port,
    read_boolean,
    read_duration,
    read_integer,
    read_list,
    read_number,
    split_flag,
    text,
)
from fakeapiserver.controller_manager.descriptor import selected
from fakeapiserver.server.options.config import FEATURE_GATES, OLDER_FEATURE_GATES, SYNCS, Config


class Parsed(Struct):
    """`warnings` are lines for standard error; `command` is what follows `--`; `given`: each flag that was set,
    and its last text."""

    config: Config
    write_kubeconfig: Path | None = None
    background: bool = False
    stop_with_stdin: bool = False
    verbosity: int = 0
    output: str = "text"
    warnings: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)


# The end of a time that names its zone.
_ZONE: Final = re.compile(r"(Z|[+-]\d\d:\d\d)$")
# --service-cluster-ip-range has so many at least.
_FEWEST_ADDRESSES: Final = 8
MOST_NODES: Final = 10_000  # nodes/ isn't imported for it


def _ip_range(text: str) -> str:
    try:
        return ",".join(str(ipaddress.ip_network(part, strict=False)) for part in read_list(text))
    except ValueError as error:
        raise UsageError(f"--service-cluster-ip-range must be a CIDR such as 10.0.0.0/24: {error}") from None


def _port_range(text: str) -> range:
    """`30000-32767`, `30000+100` (up to 30100), or one port (upstream: k8s.io/apimachinery/pkg/util/net/port_range.go)."""
    text = text.strip()
    if not text:
        return range(0)
    if "-" in text and "+" in text:
        raise InvalidArgument(f"unable to parse port range: {text}")
    low, separator, high = text.partition("-" if "-" in text else "+")
    first = _go_integer(low)
    last = _go_integer(high) if separator else first
    if separator == "+":
        last += first
    if max(first, last) > LAST_PORT:
        raise InvalidArgument(f"the port range cannot be greater than {LAST_PORT}: {text}")
    if last < first:
        raise InvalidArgument(f"end port cannot be less than start port: {text}")
    return range(first, last + 1)


def _go_integer(text: str) -> int:
    """Go's strconv.Atoi."""
    try:
        return atoi(text)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def _modes(text: str) -> tuple[str, ...]:
    """Returns the modes; the server itself refuses unknown ones. An empty text is upstream's default."""
    return tuple(text.split(",")) if text else ("AlwaysAllow",)


def _seconds(text: str) -> float:
    seconds = read_duration(text)
    if seconds < 0:
        raise InvalidArgument("a time can't be negative")
    return seconds


def _moment(text: str) -> float:
    seconds = seconds_of(text)
    if seconds is None or not _ZONE.search(text):
        raise InvalidArgument("it must be a time such as 2026-01-01T00:00:00Z")
    return seconds


def _slice(text: str) -> tuple[str, ...]:
    """Go's StringSlice: one record of CSV."""
    try:
        return tuple(go_csv.record(text))
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def _file(text: str) -> Path | None:
    return Path(text) if text else None


def _pair(text: str) -> dict[str, str]:
    """`key=value`, as --oidc-required-claim takes it once per claim."""
    key, equals, value = text.partition("=")
    if not equals:
        raise InvalidArgument("malformed pair, expect string=string")
    return {key.strip(): value}


def read_feature_gates(text: str) -> dict[str, bool]:
    """`A=true,kube:B=false`: each gate may have the name of its component in front."""
    gates = {}
    for item in read_list(text):
        component, colon, gate = item.rpartition(":")
        if colon and component.strip() != "kube":
            raise UsageError(f"component not registered: {component.strip()}")
        name, equals, value = (part.strip() for part in gate.partition("="))
        if not equals:
            raise UsageError(f"missing bool value for {name}")
        try:
            gates[name] = parse_bool(value)
        except ValueError as problem:
            raise UsageError(f"invalid value of {name}={value}, err: {problem}") from None
    return gates


def _runtime_config(text: str) -> dict[str, str]:
    """`api/all=true,batch/v1=false`; a key alone says nothing, which means true."""
    pairs = (item.partition("=") for item in text.split(",") if item)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _context_name(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise UsageError(f"--context-name must be a name such as fakeapiserver, not {text!r}")
    return text


def _kubernetes_version(text: str) -> str:
    try:
        return minor_version(text)
    except ValueError as error:
        raise UsageError(f"--kubernetes-version: {error}") from None


# flag -> (field of Config, or of a structure in it; how its text is read)
HEEDED: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "admission-control": ("admission_control", read_list),
    "admission-control-config-file": ("admission_control_config_file", Path),
    "advertise-address": ("advertise_address", address("advertise-address")),
    "aggregator-reject-forwarding-redirect": ("aggregator_reject_forwarding_redirect", read_boolean),
    "anonymous-auth": ("anonymous_auth", read_boolean),
    "api-audiences": ("api_audiences", _slice),
    "audit-log-batch-buffer-size": ("audit.log.batch.buffer_size", read_integer),
    "audit-log-batch-max-size": ("audit.log.batch.max_size", read_integer),
    "audit-log-batch-max-wait": ("audit.log.batch.max_wait", _seconds),
    "audit-log-batch-throttle-burst": ("audit.log.batch.throttle_burst", read_integer),
    "audit-log-batch-throttle-enable": ("audit.log.batch.throttle_enable", read_boolean),
    "audit-log-batch-throttle-qps": ("audit.log.batch.throttle_qps", read_number),
    "audit-log-compress": ("audit.log.compress", read_boolean),
    "audit-log-format": ("audit.log.format", str),
    "audit-log-maxage": ("audit.log.maxage", read_integer),
    "audit-log-maxbackup": ("audit.log.maxbackup", read_integer),
    "audit-log-maxsize": ("audit.log.maxsize", read_integer),
    "audit-log-mode": ("audit.log.mode", str),
    "audit-log-path": ("audit.log.path", str),
    "audit-log-truncate-enabled": ("audit.log.truncate.enabled", read_boolean),
    "audit-log-truncate-max-batch-size": ("audit.log.truncate.max_batch_size", read_integer),
    "audit-log-truncate-max-event-size": ("audit.log.truncate.max_event_size", read_integer),
    "audit-log-version": ("audit.log.version", str),
    "audit-policy-file": ("audit.policy_file", _file),
    "audit-webhook-batch-buffer-size": ("audit.webhook.batch.buffer_size", read_integer),
    "audit-webhook-batch-initial-backoff": ("audit.webhook.initial_backoff", _seconds),
    "audit-webhook-batch-max-size": ("audit.webhook.batch.max_size", read_integer),
    "audit-webhook-batch-max-wait": ("audit.webhook.batch.max_wait", _seconds),
    "audit-webhook-batch-throttle-burst": ("audit.webhook.batch.throttle_burst", read_integer),
    "audit-webhook-batch-throttle-enable": ("audit.webhook.batch.throttle_enable", read_boolean),
    "audit-webhook-batch-throttle-qps": ("audit.webhook.batch.throttle_qps", read_number),
    "audit-webhook-config-file": ("audit.webhook.config_file", str),
    "audit-webhook-initial-backoff": ("audit.webhook.initial_backoff", _seconds),
    "audit-webhook-mode": ("audit.webhook.mode", str),
    "audit-webhook-truncate-enabled": ("audit.webhook.truncate.enabled", read_boolean),
    "audit-webhook-truncate-max-batch-size": ("audit.webhook.truncate.max_batch_size", read_integer),
    "audit-webhook-truncate-max-event-size": ("audit.webhook.truncate.max_event_size", read_integer),
    "audit-webhook-version": ("audit.webhook.version", str),
    "authentication-config": ("authentication_config", _file),
    "authentication-token-webhook-cache-ttl": ("authentication_token_webhook_cache_ttl", read_duration),
    "authentication-token-webhook-config-file": ("authentication_token_webhook_config_file", _file),
    "authentication-token-webhook-version": ("authentication_token_webhook_version", str),
    "authorization-config": ("authorization_config", _file),
    "authorization-mode": ("authorization_mode", _modes),
    "authorization-policy-file": ("authorization_policy_file", _file),
    "authorization-webhook-cache-authorized-ttl": ("authorization_webhook_cache_authorized_ttl", _seconds),
    "authorization-webhook-cache-unauthorized-ttl": ("authorization_webhook_cache_unauthorized_ttl", _seconds),
    "authorization-webhook-config-file": ("authorization_webhook_config_file", _file),
    "authorization-webhook-version": ("authorization_webhook_version", str),
    "bind-address": ("bind_address", address("bind-address")),
    "cert-dir": ("cert_dir", Path),
    "client-ca-file": ("client_ca_file", _file),
    "context-name": ("context_name", _context_name),
    "controllers": ("controllers", read_list),
    "metrics": ("metrics", read_list),
    "nodes": ("nodes", count("nodes", MOST_NODES)),
    "local-storage": ("local_storage", read_boolean),
    "cloud-storage": ("cloud_storage", read_boolean),
    "load-balancers": ("load_balancers", read_boolean),
    "stages": ("stages", paths("stages")),
    "faults": ("faults", paths("faults")),
    "load": ("load", _file),
    "data-dir": ("data_dir", Path),
    "read-only": ("read_only", read_boolean),
    "sync": ("sync", choice("sync", *SYNCS)),
    "kept-requests": ("kept_requests", count("kept-requests")),
    "kept-request-bytes": ("kept_request_bytes", count("kept-request-bytes")),
    "seed": ("seed", count("seed")),
    "stopped-at": ("stopped_at", _moment),
    "step-controllers": ("step_controllers", read_list),
    "crds": ("crds", paths("crds")),
    "disable-admission-plugins": ("disable_admission_plugins", read_list),
    "etcd": ("etcd.starts", read_boolean),
    "etcd-binary": ("etcd.binary", text("etcd-binary")),
    "encryption-provider-config": ("etcd.encryption_config", _file),
    "encryption-provider-config-automatic-reload": ("etcd.reloads_encryption", read_boolean),
    "etcd-cafile": ("etcd.cafile", text("etcd-cafile")),
    "etcd-certfile": ("etcd.certfile", text("etcd-certfile")),
    "etcd-compaction-interval": ("etcd_compaction_interval", _seconds),
    "etcd-keyfile": ("etcd.keyfile", text("etcd-keyfile")),
    "etcd-prefix": ("etcd.prefix", text("etcd-prefix")),
    "etcd-servers": ("etcd.servers", read_list),
    "event-ttl": ("etcd.event_ttl", _seconds),
    "enable-aggregator-routing": ("enable_aggregator_routing", read_boolean),
    "enable-admission-plugins": ("enable_admission_plugins", read_list),
    "enable-bootstrap-token-auth": ("enable_bootstrap_token_auth", read_boolean),
    "enable-priority-and-fairness": ("enable_priority_and_fairness", read_boolean),
    "external-hostname": ("external_hostname", str),
    "feature-gates": ("feature_gates", read_feature_gates),
    "emulated-version": ("emulated_version", str),
    "kubernetes-version": ("kubernetes_version", _kubernetes_version),
    "min-compatibility-version": ("min_compatibility_version", str),
    "max-mutating-requests-inflight": ("max_mutating_requests_inflight", count("max-mutating-requests-inflight")),
    "max-requests-inflight": ("max_requests_inflight", count("max-requests-inflight")),
    "min-request-timeout": ("min_request_timeout", count("min-request-timeout")),
    "kubelet-certificate-authority": ("kubelet_certificate_authority", Path),
    "kubelet-client-certificate": ("kubelet_client_certificate", Path),
    "kubelet-client-key": ("kubelet_client_key", Path),
    "kubelet-preferred-address-types": ("kubelet_preferred_address_types", _slice),
    "oidc-ca-file": ("oidc_ca_file", _file),
    "oidc-client-id": ("oidc_client_id", str),
    "oidc-groups-claim": ("oidc_groups_claim", str),
    "oidc-groups-prefix": ("oidc_groups_prefix", str),
    "oidc-issuer-url": ("oidc_issuer_url", str),
    "oidc-required-claim": ("oidc_required_claim", _pair),
    "oidc-signing-algs": ("oidc_signing_algs", _slice),
    "oidc-username-claim": ("oidc_username_claim", str),
    "oidc-username-prefix": ("oidc_username_prefix", str),
    "proxy-client-cert-file": ("proxy_client_cert_file", Path),
    "proxy-client-key-file": ("proxy_client_key_file", Path),
    "request-timeout": ("request_timeout", _seconds),
    "requestheader-allowed-names": ("requestheader_allowed_names", _slice),
    "requestheader-client-ca-file": ("requestheader_client_ca_file", _file),
    "requestheader-extra-headers-prefix": ("requestheader_extra_headers_prefix", _slice),
    "requestheader-group-headers": ("requestheader_group_headers", _slice),
    "requestheader-uid-headers": ("requestheader_uid_headers", _slice),
    "requestheader-username-headers": ("requestheader_username_headers", _slice),
    "runtime-config": ("runtime_config", _runtime_config),
    "secure-port": ("secure_port", port("secure-port")),
    "service-account-extend-token-expiration": ("service_account_extend_token_expiration", read_boolean),
    "service-account-issuer": ("service_account_issuer", lambda text: (text,)),
    "service-account-jwks-uri": ("service_account_jwks_uri", str),
    "service-account-key-file": ("service_account_key_file", lambda text: (Path(text),)),
    "service-account-lookup": ("service_account_lookup", read_boolean),
    "service-account-max-token-expiration": ("service_account_max_token_expiration", read_duration),
    "service-account-signing-key-file": ("service_account_signing_key_file", _file),
    "service-cluster-ip-range": ("service_cluster_ip_range", _ip_range),
    "kubernetes-service-node-port": ("kubernetes_service_node_port", read_integer),
    "storage-media-type": ("etcd.media_type", str),
    "service-node-port-range": ("service_node_port_range", _port_range),
    "tls-cert-file": ("tls_cert_file", Path),
    "ui": ("ui", read_boolean),
    "ui-port": ("ui_port", port("ui-port")),
    "tls-private-key-file": ("tls_private_key_file", Path),
    "token-auth-file": ("token_auth_file", _file),
    "webhook-cert-dir": ("webhook_cert_dir", Path),
    "webhook-port": ("webhook_port", port("webhook-port")),
    "webhooks": ("webhooks", paths("webhooks")),
}
_OWN: Final = {
    "background": "bool",
    "context-name": "string",
    "controllers": "strings",
    "step-controllers": "strings",
    "cloud-storage": "bool",
    "crds": "strings",
    "data-dir": "string",
    "etcd": "bool",
    "etcd-binary": "string",
    "faults": "strings",
    "help": "bool",
    "kept-request-bytes": "int",
    "kept-requests": "int",
    "kubernetes-version": "string",
    "load": "string",
    "load-balancers": "bool",
    "local-storage": "bool",
    "metrics": "strings",
    "name": "string",
    "nodes": "int",
    "output": "string",
    "read-only": "bool",
    "seed": "int",
    "stages": "strings",
    "stop-with-stdin": "bool",
    "stopped-at": "string",
    "sync": "string",
    "ui": "bool",
    "ui-port": "int",
    "webhook-cert-dir": "string",
    "webhook-port": "int",
    "webhooks": "strings",
    "write-kubeconfig": "string",
}
# Flags with an effect whose values are checked where those without one are.
_VERSIONS: Final = {"emulated-version", "min-compatibility-version"}
_CHECKED_LATER: Final = _VERSIONS | {
    "runtime-config",
    "storage-media-type",
    "encryption-provider-config-automatic-reload",
}
# Upstream's, but not in its help.
_HIDDEN: Final = {"audit-webhook-batch-initial-backoff": "duration"}


def _upstream_types() -> dict[str, str]:
    return {**read_table(NEWEST, "flags.json")["flags"], **_HIDDEN, "v": "Level"}


def flag_types() -> dict[str, str]:
    """The types of the flags of `serve` and `run`, by name: upstream's for its own flags."""
    return {**_upstream_types(), **_OWN}


def parse(arguments: Sequence[str], config: Config | None = None) -> Parsed:
    """Parses a command line.

    Raises UsageError for an unknown flag, a missing value or a value that can't be read. With a `config` to fill in, flags that
    kube-apiserver doesn't have are refused as well, but for --controllers and --nodes.
    """
    upstream = _upstream_types()
    types = flag_types() if config is None else {**upstream, **{name: _OWN[name] for name in ("controllers", "nodes")}}
    parsed = Parsed(config or Config())
    unheeded: dict[str, str] = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            parsed.command = words
            break
        name, value = split_flag(word, words, types)
        _set(parsed, name, value)
        if name not in HEEDED and name in upstream:
            unheeded[name] = types[name]
        parsed.given[name] = value
    parsed.config.given = frozenset(parsed.given)
    _check(parsed.config)
    if gates := parsed.config.feature_gates:
        parsed.warnings += feature_gates.leaving_warnings(minor_version(parsed.config.kubernetes_version), gates)
    if unheeded or parsed.given.keys() & _CHECKED_LATER:
        _check_unheeded(parsed, unheeded)
    parsed.warnings += preview_warnings(parsed.config.kubernetes_version)
    parsed.warnings += unheeded_flags.encryption_warnings(parsed.config)
    return parsed


def _check_unheeded(parsed: Parsed, types: Mapping[str, str]) -> None:
    """`types`: those of the flags without effect that were given. UsageError, in upstream's words."""
    for name, flag_type in types.items():
        unheeded_flags.check_value(name, parsed.given[name], flag_type)
    try:
        gates = parsed.config.features
    except ValueError as error:
        raise UsageError(str(error)) from None
    unheeded_flags.check(parsed.given, gates)


def _set(parsed: Parsed, name: str, value: str) -> None:
    if name == "write-kubeconfig":
        parsed.write_kubeconfig = Path(text(name)(value))
    elif name == "output":
        parsed.output = choice("output", *OUTPUTS)(value)
    elif name == "v":
        parsed.verbosity = level(value)
        parsed.config.prints_requests = parsed.verbosity >= 2
    elif name in HEEDED:
        place, read = HEEDED[name]
        try:
            read_value = read(value)
        except InvalidArgument as error:
            raise UsageError(f"invalid argument {go_quote(value)} for {go_quote(f'--{name}')} flag: {error}") from None
        group, _, attribute = place.rpartition(".")
        target = attrgetter(group)(parsed.config) if group else parsed.config
        if isinstance(read_value, tuple) and name in parsed.given:  # a list flag given again adds to the list
            read_value = getattr(target, attribute) + read_value
        if name == "feature-gates":
            ignored = [gate for gate in read_value if gate not in (*FEATURE_GATES, *OLDER_FEATURE_GATES)]
            parsed.warnings += [f"--feature-gates: {gate} has no effect here" for gate in ignored]
        if isinstance(read_value, dict):
            read_value = {**getattr(target, attribute), **read_value}
        setattr(target, attribute, read_value)
    elif name in ("background", "stop-with-stdin"):
        setattr(parsed, name.replace("-", "_"), read_boolean(value))
    elif name not in ("help", "version", "name"):
        parsed.warnings.append(f"--{name} is kube-apiserver's, but has no effect here")


def _check(config: Config) -> None:
    for flag, names in (("controllers", config.controllers), ("step-controllers", config.step_controllers)):
        try:
            selected(names)
        except ValueError as error:
            raise UsageError(f"--{flag}: {error}") from None
    _check_service_ranges(config)
    if (config.tls_cert_file is None) != (config.tls_private_key_file is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together: give both or none")
    if (config.proxy_client_cert_file is None) != (config.proxy_client_key_file is None):
        raise UsageError("--proxy-client-cert-file and --proxy-client-key-file belong together: give both or none")
    for flag, path in (
        ("tls-cert-file", config.tls_cert_file),
        ("tls-private-key-file", config.tls_private_key_file),
        ("proxy-client-cert-file", config.proxy_client_cert_file),
        ("proxy-client-key-file", config.proxy_client_key_file),
    ):
        if path is not None and not path.is_file():
            raise UsageError(f"--{flag}: there is no file {path}")


def _check_service_ranges(config: Config) -> None:
    """Upstream: cmd/kube-apiserver/app/options/{completion,validation}.go."""
    networks = [ipaddress.ip_network(text) for text in config.service_ranges]
    if not networks:
        raise UsageError("--service-cluster-ip-range must contain at least one valid cidr")
    if networks[0].num_addresses < _FEWEST_ADDRESSES:
        raise UsageError(
            "error determining service IP ranges for primary service cidr: the service cluster IP range must be at least "
            f"{_FEWEST_ADDRESSES} IP addresses"
        )
    problems = []
    if len(networks) > 2:
        problems.append("--service-cluster-ip-range must not contain more than two entries")
    if len(networks) > 1 and networks[0].version == networks[1].version:
        problems.append(
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family"
        )
    advertised = config.advertise_address
    if advertised and ipaddress.ip_address(advertised).version != networks[0].version:
        problems.append(
            f"service IP family {go_quote(str(networks[0]))} must match public address family {go_quote(advertised)}"
        )
    port, ports = config.kubernetes_service_node_port, config.service_node_port_range
    if not 0 <= port <= LAST_PORT:
        problems.append(
            f"--kubernetes-service-node-port {port} must be between 0 and {LAST_PORT}, inclusive. If 0, the Kubernetes master "
            "service will be of type ClusterIP"
        )
    if port > 0 and port not in ports:
        shown = f"{ports.start}-{ports.stop - 1}" if ports else ""
        problems.append(f"kubernetes service node port range {shown} doesn't contain {port}")
    if problems:
        raise UsageError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
