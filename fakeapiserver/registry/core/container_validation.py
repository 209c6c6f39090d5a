"""What a container may say.

Upstream: pkg/apis/core/validation/validation.go (validateContainers and what it calls).
"""

import re
from collections.abc import Callable
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.pod_resources import is_extended
from fakeapiserver.registry.core.container_policies import (
    claim_errors,
    init_resize_policy_errors,
    resize_policy_errors,
    restart_policy_errors,
)
from fakeapiserver.registry.core.data_keys import is_config_map_key
from fakeapiserver.registry.core.field_formats import (
    choice_errors,
    duplicate_errors,
    is_valid_port_name,
    name_errors,
    non_negative_errors,
    port_errors,
    port_or_name_errors,
    protocol_errors,
    required_label_errors,
)
from fakeapiserver.registry.core.pod_security_validation import security_context_errors
from fakeapiserver.registry.core.resource_list import is_whole, quantity

NameRule = Callable[[str, Path], ErrorList]
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
# Of a container, what one that is added to a running pod has not.
_NOT_EPHEMERAL: Final = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_PROBE_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_HUGE_PAGES: Final = "hugepages-"
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_ENV_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ENV_FIELDS: Final = re.compile(
    r"metadata\.(name|namespace|uid)|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)"
    r"|metadata\.(labels|annotations)\['.+'\]"
)
_ENV_NAME: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def container_list_errors(spec: Object, volumes: set[str], path: Path) -> ErrorList:
    """Containers and init containers; `volumes` are the names that mounts may name."""
    containers: list[Object] = spec.get("containers") or []
    at = path.child("containers")
    errors = [] if containers else [field.required(at)]
    seen: set[str] = set()
    for i, container in enumerate(containers):
        errors += _container_errors(container, spec, volumes, at.index(i))
        errors += duplicate_errors(container.get("name", ""), seen, at.index(i).child("name"))
        errors += _probe_list_errors(container, at.index(i)) + restart_policy_errors(container, at.index(i))
    errors += _host_port_errors(containers, at)
    at = path.child("initContainers")
    for i, container in enumerate(spec.get("initContainers") or ()):
        errors += _container_errors(container, spec, volumes, at.index(i))
        errors += restart_policy_errors(container, at.index(i), is_init=True)
        errors += duplicate_errors(container.get("name", ""), seen, at.index(i).child("name"))
        errors += _init_errors(container, at.index(i))
    at, others = path.child("ephemeralContainers"), set(seen)
    for i, container in enumerate(spec.get("ephemeralContainers") or ()):
        errors += _container_errors(container, spec, volumes, at.index(i))
        errors += duplicate_errors(container.get("name", ""), seen, at.index(i).child("name"))
        errors += _ephemeral_errors(container, others, at.index(i))
    return errors


def _ephemeral_errors(container: Object, others: set[str], path: Path) -> ErrorList:
    errors: ErrorList = []
    image = container.get("image", "")
    if image != image.strip():
        errors.append(field.invalid(path.child("image"), image, "must not have leading or trailing whitespace"))
    target = container.get("targetContainerName")
    if target and target not in others:
        errors.append(field.not_found(path.child("targetContainerName"), target))
    detail = "cannot be set for an Ephemeral Container"
    errors += [field.forbidden(path.child(name), detail) for name in _NOT_EPHEMERAL if container.get(name)]
    return errors + [
        field.forbidden(path.child("volumeMounts").index(i).child(name), detail)
        for i, mount in enumerate(container.get("volumeMounts") or ())
        for name in ("subPath", "subPathExpr")
        if mount.get(name)
    ]


def _init_errors(container: Object, path: Path) -> ErrorList:
    if container.get("restartPolicy") == "Always":
        return _probe_list_errors(container, path)
    detail = "may not be set for init containers without restartPolicy=Always"
    errors = [field.forbidden(path.child(name), detail) for name in ("lifecycle", *_PROBES) if name in container]
    return errors + init_resize_policy_errors(container, path)


def _container_errors(container: Object, spec: Object, volumes: set[str], path: Path) -> ErrorList:
    """What holds for all of them, of a pod of such a `spec`."""
    errors = required_label_errors(container.get("name", ""), path.child("name"))
    if not container.get("image"):
        errors.append(field.required(path.child("image")))
    policy = container.get("terminationMessagePolicy", "")
    errors += choice_errors(policy, _MESSAGE_POLICIES, path.child("terminationMessagePolicy"))
    errors += _port_list_errors(container.get("ports") or [], path.child("ports"))
    for i, variable in enumerate(container.get("env") or ()):
        errors += _env_errors(variable, path.child("env").index(i))
    errors += _mount_errors(container.get("volumeMounts") or [], volumes, path.child("volumeMounts"))
    errors += choice_errors(container.get("imagePullPolicy", ""), _PULL_POLICIES, path.child("imagePullPolicy"))
    resources: Object = container.get("resources") or {}
    claims = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
    errors += resource_errors(resources, path.child("resources"))
    errors += claim_errors(resources.get("claims") or [], claims, path.child("resources", "claims"))
    policies = container.get("resizePolicy") or []
    errors += resize_policy_errors(policies, spec.get("restartPolicy", ""), path.child("resizePolicy"))
    host_users = spec.get("hostUsers") is not False
    return errors + security_context_errors(container.get("securityContext"), path.child("securityContext"), host_users)


def _port_list_errors(ports: list[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        at = path.index(i)
        if name := port.get("name"):
            problems = name_errors(name, is_valid_port_name, at.child("name"))
            errors += problems or duplicate_errors(name, seen, at.child("name"))
        if number := port.get("containerPort"):
            errors += port_errors(number, at.child("containerPort"))
        else:
            errors.append(field.required(at.child("containerPort")))
        if host_port := port.get("hostPort"):
            errors += port_errors(host_port, at.child("hostPort"))
        errors += protocol_errors(port.get("protocol", ""), at.child("protocol"))
    return errors


def _host_port_errors(containers: list[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports") or ()):
            if number := port.get("hostPort"):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
                errors += duplicate_errors(key, seen, path.index(i).child("ports").index(j).child("hostPort"))
    return errors


def _env_errors(variable: Object, path: Path) -> ErrorList:
    name = variable.get("name", "")
    errors = [] if name else [field.required(path.child("name"))]
    if not (name.isascii() and name.isprintable() and "=" not in name):
        errors.append(field.invalid(path.child("name"), name, _ENV_NAME))
    source: Object | None = variable.get("valueFrom")
    if source is None:
        return errors
    at = path.child("valueFrom")
    given = [kind for kind in _ENV_SOURCES if kind in source]
    for kind in given:
        errors += _env_source_errors(kind, source[kind], at.child(kind))
    if not given:
        *most, last = (f"`{kind}`" for kind in _ENV_SOURCES)
        errors.append(field.invalid(at, "", f"must specify one of: {', '.join(most)} or {last}"))
    elif variable.get("value"):
        errors.append(field.invalid(at, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errors.append(field.invalid(at, "", "may not have more than one field specified at a time"))
    return errors


def _env_source_errors(kind: str, source: Object, path: Path) -> ErrorList:
    if kind == "fieldRef":
        label = source.get("fieldPath", "")
        if not label:
            return [field.required(path.child("fieldPath"))]
        if _ENV_FIELDS.fullmatch(label):
            return []
        detail = f"error converting fieldPath: field label not supported: {label}"
        return [field.invalid(path.child("fieldPath"), label, detail)]
    if kind not in ("configMapKeyRef", "secretKeyRef"):
        return []
    errors = name_errors(source.get("name", ""), names.is_dns1123_subdomain, path.child("name"))
    if not (key := source.get("key")):
        return [*errors, field.required(path.child("key"))]
    return errors + name_errors(key, is_config_map_key, path.child("key"))


def _mount_errors(mounts: list[Object], volumes: set[str], path: Path) -> ErrorList:
    errors: ErrorList = []
    places: set[str] = set()
    for i, mount in enumerate(mounts):
        at, name, place = path.index(i), mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(field.required(at.child("name")))
        if name not in volumes:
            errors.append(field.not_found(at.child("name"), name))
        if not place:
            errors.append(field.required(at.child("mountPath")))
        if place in places:
            errors.append(field.invalid(at.child("mountPath"), place, "must be unique"))
        places.add(place)
    return errors


def resource_errors(resources: Object, path: Path, name_rule: NameRule | None = None) -> ErrorList:
    """Names, amounts, and that nothing asks for more than its limit (validateResourceRequirements); names are those of a container
    unless a rule says otherwise."""
    rule = name_rule or container_resource_name_errors
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors: ErrorList = []
    for name in sorted(limits):
        at = path.child("limits").key(name)
        errors += rule(name, at) + _amount_errors(name, limits[name], at) + _huge_page_errors(name, limits[name], at)
    for name in sorted(requests):
        at = path.child("requests").key(name)
        errors += rule(name, at) + _amount_errors(name, requests[name], at)
        errors += _overcommit_errors(name, requests[name], limits, path)
        errors += _huge_page_errors(name, requests[name], at)
    given = limits.keys() | requests.keys()
    if any(name.startswith(_HUGE_PAGES) for name in given) and not given & {"cpu", "memory"}:
        errors.append(field.forbidden(path, "HugePages require cpu or memory"))
    return errors


def _overcommit_errors(name: str, amount: str, limits: Object, path: Path) -> ErrorList:
    # Of what can't be shared exactly what is asked for is given.
    shared = ("/" not in name or "kubernetes.io/" in name) and not name.startswith(_HUGE_PAGES)
    if name not in limits:
        detail = "Limit must be set for non overcommitable resources"
        return [] if shared else [field.required(path.child("limits"), detail)]
    asked, limit = quantity(amount), quantity(limits[name])
    if asked != limit and not shared:
        detail = f"must be equal to {name} limit of {limits[name]}"
    elif asked > limit:
        detail = f"must be less than or equal to {name} limit of {limits[name]}"
    else:
        return []
    return [field.invalid(path.child("requests"), amount, detail)]


def container_resource_name_errors(name: str, path: Path) -> ErrorList:
    errors = name_errors(name, names.is_qualified_name, path)
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE_PAGES):
        if not errors:
            errors.append(field.invalid(path, name, "must be a standard resource type or fully qualified"))
        errors.append(field.invalid(path, name, "must be a standard resource for containers"))
    elif "/" in name and "kubernetes.io/" not in name and not is_extended(name):
        errors.append(field.invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def _amount_errors(name: str, amount: str, path: Path) -> ErrorList:
    errors = []
    if quantity(amount) < 0:
        errors.append(field.invalid(path, amount, "must be greater than or equal to 0"))
    elif is_extended(name) and not is_whole(amount):
        errors.append(field.invalid(path, amount, "must be an integer"))
    return errors


def _huge_page_errors(name: str, amount: str, path: Path) -> ErrorList:
    if not name.startswith(_HUGE_PAGES):
        return []
    size = quantity(name.removeprefix(_HUGE_PAGES))
    if size > 0 and size == int(size) and quantity(amount) % size == 0:
        return []
    return [field.invalid(path, amount, f"{amount} is not positive integer multiple of {name}")]


def _probe_list_errors(container: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    for event, handler in (container.get("lifecycle") or {}).items():
        if isinstance(handler, dict):
            errors += _handler_errors(handler, path.child("lifecycle", event))
    for name in _PROBES:
        if name not in container:
            continue
        probe, at = container[name], path.child(name)
        errors += _handler_errors(probe, at)
        for number in _PROBE_NUMBERS:
            errors += non_negative_errors(probe.get(number, 0), at.child(number))
        if name != "readinessProbe" and probe.get("successThreshold") != 1:
            errors.append(field.invalid(at.child("successThreshold"), probe.get("successThreshold", 0), "must be 1"))
    return errors


def _handler_errors(handler: Object, path: Path) -> ErrorList:
    given = [kind for kind in _HANDLERS if kind in handler]
    if not given:
        return [field.required(path, "must specify a handler type")]
    errors: ErrorList = []
    action, at = handler[given[0]], path.child(given[0])
    if given[0] == "exec" and not action.get("command"):
        errors.append(field.required(at.child("command")))
    elif given[0] in ("httpGet", "tcpSocket", "grpc"):
        errors += port_or_name_errors(action.get("port", 0), at.child("port"))
    if given[0] == "httpGet" and action.get("scheme") not in ("HTTP", "HTTPS"):
        errors.append(field.not_supported(at.child("scheme"), action.get("scheme"), ("HTTP", "HTTPS")))
    detail = "may not specify more than 1 handler type"
    return errors + [field.forbidden(path.child(kind), detail) for kind in given[1:]]
