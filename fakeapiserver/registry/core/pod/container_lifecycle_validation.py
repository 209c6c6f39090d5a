"""Validation of a container's probes and lifecycle hooks.

Upstream: pkg/apis/core/validation/validation.go (validateProbe, validateLifecycle and what they call).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import (
    is_http_header_name,
    name_errors,
    non_negative_errors,
    port_errors,
    port_or_name_errors,
)

PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
# spec.os.name -> the signals that stop its containers.
_SIGNALS: Final = {
    "linux": sorted(
        (
            *("SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT"),
            *(
                "SIGIO",
                "SIGIOT",
                "SIGKILL",
                "SIGPIPE",
                "SIGPOLL",
                "SIGPROF",
                "SIGPWR",
                "SIGQUIT",
                "SIGSEGV",
                "SIGSTKFLT",
            ),
            *(
                "SIGSTOP",
                "SIGSYS",
                "SIGTERM",
                "SIGTRAP",
                "SIGTSTP",
                "SIGTTIN",
                "SIGTTOU",
                "SIGURG",
                "SIGUSR1",
                "SIGUSR2",
            ),
            *("SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ", "SIGRTMIN", "SIGRTMAX"),
            *(f"SIGRTMIN+{i}" for i in range(1, 16)),
            *(f"SIGRTMAX-{i}" for i in range(1, 15)),
        )
    ),
    "windows": ("SIGKILL", "SIGTERM"),
}
_SCHEMES: Final = ("HTTP", "HTTPS")
_PROTOCOLS: Final = ("HTTP1", "HTTP2")
_GRPC_MODES: Final = ("Plaintext", "TLS")
_OF_PROBES: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS: Final = ("exec", "httpGet", "tcpSocket", "sleep")


def lifecycle_errors(container: Object, grace: int | None, system: str | None, path: Path) -> ErrorList:
    """The errors in hooks, the stop signal and probes.
    `grace` is the number of seconds that the pod has to end, `system` is its os.name."""
    errors: ErrorList = []
    hooks = container.get("lifecycle") or {}
    for event in ("postStart", "preStop"):
        if event in hooks:
            errors += _handler_errors(hooks[event], _OF_HOOKS, grace, path.child("lifecycle", event))
    if (signal := hooks.get("stopSignal")) is not None:
        errors += _signal_errors(signal, system, path.child("lifecycle", "stopSignal"))
    for name in PROBES:
        if name in container:
            errors += _probe_errors(container[name], name, path.child(name))
    return errors


def _signal_errors(signal: str, system: str | None, path: Path) -> ErrorList:
    if system is None:
        return [field.forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    known = _SIGNALS.get(system, (signal,))
    return [] if signal in known else [field.not_supported(path, signal, known)]


def _probe_errors(probe: Object, name: str, path: Path) -> ErrorList:
    errors = _handler_errors(probe, _OF_PROBES, None, path)
    for number in _NUMBERS:
        errors += non_negative_errors(probe.get(number, 0), path.child(number))
    seconds, at = probe.get("terminationGracePeriodSeconds"), path.child("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        errors.append(field.invalid(at, seconds, "must be greater than 0"))
    if name == "readinessProbe":
        unset = "must not be set for readinessProbes"
        return errors if seconds is None else [*errors, field.invalid(at, seconds, unset)]
    threshold = probe.get("successThreshold", 0)
    return (
        errors if threshold == 1 else [*errors, field.invalid(path.child("successThreshold"), threshold, "must be 1")]
    )


def _handler_errors(handler: Object, kinds: Sequence[str], grace: int | None, path: Path) -> ErrorList:
    given = [kind for kind in kinds if kind in handler]
    if not given:
        return [field.required(path, "must specify a handler type")]
    first, *others = given
    if first == "sleep":
        errors = _sleep_errors(handler[first], grace, path.child(first))
    else:
        errors = _ACTION_ERRORS[first](handler[first], path.child(first))
    detail = "may not specify more than 1 handler type"
    return errors + [field.forbidden(path.child(kind), detail) for kind in others]


def _exec_errors(action: Object, path: Path) -> ErrorList:
    return [] if action.get("command") else [field.required(path.child("command"))]


def _http_errors(action: Object, path: Path) -> ErrorList:
    errors = [] if action.get("path") else [field.required(path.child("path"))]
    errors += port_or_name_errors(action.get("port", 0), path.child("port"))
    if action.get("scheme") not in _SCHEMES:
        errors.append(field.not_supported(path.child("scheme"), action.get("scheme", ""), _SCHEMES))
    for header in action.get("httpHeaders") or ():
        errors += name_errors(header.get("name", ""), is_http_header_name, path.child("httpHeaders"))
    return errors + _protocol_errors(action, path)


def _protocol_errors(action: Object, path: Path) -> ErrorList:
    """The errors in the version of HTTP that a probe speaks (H2CContainerProbe)."""
    protocol, host, at = action.get("protocol"), action.get("host"), path.child("protocol")
    if protocol is not None and protocol not in _PROTOCOLS:
        return [field.not_supported(at, protocol, _PROTOCOLS)]
    if protocol != "HTTP2":
        return []
    if action.get("scheme") != "HTTP":
        return [field.invalid(at, field.json_text(protocol), "is only supported with HTTP (H2C)")]
    return [field.invalid(path.child("host"), host, 'must be empty when `protocol` is "HTTP2"')] if host else []


def _grpc_errors(action: Object, path: Path) -> ErrorList:
    errors, mode = port_errors(action.get("port", 0), path.child("port")), action.get("mode")
    if mode is None or mode in _GRPC_MODES:
        return errors
    return [*errors, field.not_supported(path.child("mode"), mode, _GRPC_MODES)]


def _sleep_errors(action: Object, grace: int | None, path: Path) -> ErrorList:
    seconds = action.get("seconds", 0)
    if grace is None or 0 <= seconds <= grace:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
    return [field.invalid(path, seconds, detail)]


_ACTION_ERRORS: Final[Mapping[str, Callable[[Object, Path], ErrorList]]] = {
    "exec": _exec_errors,
    "httpGet": _http_errors,
    "tcpSocket": lambda action, path: port_or_name_errors(action.get("port", 0), path.child("port")),
    "grpc": _grpc_errors,
}
