"""The rules for security in pods and templates: contexts, operating systems, and annotations that stand for fields.

Upstream: pkg/apis/core/validation/validation.go (ValidateSecurityContext, validatePodSpecSecurityContext, validateHostUsers,
validateWindowsHostProcessPod, validateOS, ValidatePodSpecificAnnotations, validateSeccompAnnotationsAndFields and what they call).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import descending_path_errors
from fakeapiserver.registry.core.pod.options import PodOptions
from fakeapiserver.registry.core.pod.template import CONTAINER_LISTS

APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_MOST_ID: Final = 2**31 - 1
_IDS: Final = f"must be between 0 and {_MOST_ID}, inclusive"
_LONGEST_PROFILE: Final = 4095
_LARGEST_CREDENTIALS: Final = 64 * 1024
_WITHOUT_ESCALATION: Final = "cannot set `allowPrivilegeEscalation` to false and "
_NOT_WINDOWS: Final = "cannot be set for a windows pod"
_NOT_LINUX: Final = "windows options cannot be set for a linux pod"
_HOST_PROCESS_ALL: Final = (
    "If pod contains any hostProcess containers then all containers must be HostProcess containers"
)
_HOST_PROCESS_NETWORK: Final = "hostNetwork must be true if pod contains any hostProcess containers"
_MISMATCH: Final = "{} {} in annotation and field must match"
_SYSCTL: Final = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_LONGEST_SYSCTL: Final = 253
_IPC: Final = ("kernel.shm", "kernel.msg", "fs.mqueue.")
# Fields of a pod's own context and beside it, in the order of their errors.
_LINUX_ONLY_POD: Final = (
    ("securityContext", "appArmorProfile"),
    ("securityContext", "seLinuxOptions"),
    ("", "hostUsers"),
    ("", "hostPID"),
    ("", "hostIPC"),
    ("securityContext", "seccompProfile"),
    ("securityContext", "fsGroup"),
    ("securityContext", "fsGroupChangePolicy"),
    ("securityContext", "sysctls"),
    ("", "shareProcessNamespace"),
    ("securityContext", "runAsUser"),
    ("securityContext", "runAsGroup"),
    ("securityContext", "supplementalGroups"),
    ("securityContext", "supplementalGroupsPolicy"),
    ("securityContext", "seLinuxChangePolicy"),
)
_LINUX_ONLY: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_LONGEST_DOMAIN: Final = 256
_LONGEST_USER: Final = 104
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NET_BIOS: Final = re.compile(r'^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}\Z')
_DOMAIN_PART: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN: Final = re.compile(rf"^{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*\Z")
_NOT_IN_USERS: Final = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_DOTS_AND_SPACES: Final = re.compile(r"^[. ]+\Z")
_PLAIN: Final = ("hostPID", "hostIPC", "sysctls")  # which unset and false or empty are one


def _containers(spec: Object, path: Path) -> Iterator[tuple[Object, Path]]:
    for name in CONTAINER_LISTS:
        for i, container in enumerate(spec.get(name) or ()):
            yield container, path.child(name).index(i)


# ------------------------------------------------------------------------------ contexts


def security_context_errors(context: Object | None, path: Path, host_users: bool) -> ErrorList:
    """The errors in a container's security context."""
    if context is None:
        return []
    errors = id_errors(context, ("runAsUser", "runAsGroup"), path)
    mount = context.get("procMount")
    if mount is not None and mount not in ("Default", "Unmasked"):
        errors.append(field.not_supported(path.child("procMount"), mount, ("Default", "Unmasked")))
    if host_users and mount == "Unmasked":
        detail = "`hostUsers` must be false to use `Unmasked`"
        errors.append(field.invalid(path.child("procMount"), mount, detail))
    errors += _seccomp_errors(context.get("seccompProfile"), path.child("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        go_context = internal_form(context, "SecurityContext")
        if context.get("privileged"):
            errors.append(field.invalid(path, go_context, f"{_WITHOUT_ESCALATION}`privileged` to true"))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            errors.append(field.invalid(path, go_context, f"{_WITHOUT_ESCALATION}`capabilities.Add` CAP_SYS_ADMIN"))
    errors += _windows_option_errors(context.get("windowsOptions"), path.child("windowsOptions"))
    return errors + apparmor_errors(context.get("appArmorProfile"), path.child("appArmorProfile"))


def pod_security_context_errors(spec: Object, path: Path, options: PodOptions) -> ErrorList:
    """The errors in a pod's security context; `path` is the spec's."""
    context: Object = spec.get("securityContext") or {}
    at = path.child("securityContext")
    errors = id_errors(context, ("fsGroup", "runAsUser", "runAsGroup"), at)
    for i, group in enumerate(context.get("supplementalGroups") or ()):
        errors += _id_error(group, at.child("supplementalGroups").index(i))
    of_context = options.version < "v1.37"
    if of_context:
        errors += _process_errors(spec, at)
    errors += _sysctl_errors(context.get("sysctls") or [], spec, at.child("sysctls"))
    errors += _one_of(context.get("fsGroupChangePolicy"), ("Always", "OnRootMismatch"), at.child("fsGroupChangePolicy"))
    errors += _seccomp_errors(context.get("seccompProfile"), at.child("seccompProfile"))
    errors += _windows_option_errors(context.get("windowsOptions"), at.child("windowsOptions"))
    errors += apparmor_errors(context.get("appArmorProfile"), at.child("appArmorProfile"))
    errors += _one_of(
        context.get("supplementalGroupsPolicy"), ("Merge", "Strict"), at.child("supplementalGroupsPolicy")
    )
    policies = ("MountOption", "Recursive") if options.selinux_mount else ("Recursive",)
    errors += _one_of(context.get("seLinuxChangePolicy"), policies, at.child("seLinuxChangePolicy"))
    return errors if of_context else errors + _process_errors(spec, path)


def _process_errors(spec: Object, path: Path) -> ErrorList:
    if not (spec.get("shareProcessNamespace") and spec.get("hostPID")):
        return []
    detail = "ShareProcessNamespace and HostPID cannot both be enabled"
    return [field.invalid(path.child("shareProcessNamespace"), True, detail)]


def _one_of(value: str | None, choices: Sequence[str], path: Path) -> ErrorList:
    return [] if value is None or value in choices else [field.not_supported(path, value, choices)]


def id_errors(context: Object, fields: Sequence[str], path: Path) -> ErrorList:
    return [error for name in fields for error in _id_error(context.get(name), path.child(name))]


def _id_error(number: int | None, path: Path) -> ErrorList:
    return [] if number is None or 0 <= number <= _MOST_ID else [field.invalid(path, number, _IDS)]


def _seccomp_errors(profile: Object | None, path: Path) -> ErrorList:
    if profile is None:
        return []
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    errors: ErrorList = []
    if not kind:
        errors.append(field.required(path.child("type"), "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        errors.append(field.not_supported(path.child("type"), kind, _PROFILES))
    at = path.child("localhostProfile")
    if kind != "Localhost":
        go_profile = internal_form(profile, "SeccompProfile")
        detail = "can only be set when seccomp type is Localhost"
        return errors if local is None else [*errors, field.invalid(at, go_profile, detail)]
    if local is None:
        return [*errors, field.required(at, "must be set when seccomp type is Localhost")]
    return errors + descending_path_errors(local, at)


def apparmor_errors(profile: Object | None, path: Path) -> ErrorList:
    if profile is None:
        return []
    kind, local, at = profile.get("type", ""), profile.get("localhostProfile"), path.child("localhostProfile")
    if not kind:
        return [field.required(path.child("type"), "type is required when appArmorProfile is set")]
    if kind not in _PROFILES:
        return [field.not_supported(path.child("type"), kind, _PROFILES)]
    if kind != "Localhost":
        detail = "can only be set when AppArmor type is Localhost"
        return [] if local is None else [field.invalid(at, local, detail)]
    errors: ErrorList = []
    if local is not None and local != local.strip():
        errors.append(field.invalid(at, local, "must not be padded with whitespace"))
    elif not local:
        errors.append(field.required(at, "must be set when AppArmor type is Localhost"))
    if local is not None and len(local.encode()) > _LONGEST_PROFILE:
        errors.append(field.too_long(at, _LONGEST_PROFILE))
    return errors


def _windows_option_errors(options: Object | None, path: Path) -> ErrorList:
    if options is None:
        return []
    errors: ErrorList = []
    name, spec, user = (options.get(key) for key in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"))
    if name is not None:
        errors += _pointer_errors(name, names.is_dns1123_subdomain(name), path.child("gmsaCredentialSpecName"))
    if spec is not None and not 0 < len(spec) <= _LARGEST_CREDENTIALS:
        detail = (
            "gmsaCredentialSpec size must be under 64 KiB" if spec else "gmsaCredentialSpec cannot be an empty string"
        )
        errors += _pointer_errors(spec, [detail], path.child("gmsaCredentialSpec"))
    if user is None:
        return errors
    return errors + _pointer_errors(user, _user_name_problems(user), path.child("runAsUserName"))


def _pointer_errors(text: str, problems: Sequence[str], path: Path) -> ErrorList:
    """The errors in a text that Go holds by pointer, so that messages show it as JSON."""
    return [field.invalid(path, field.json_text(text), problem) for problem in problems]


def _user_name_problems(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if _CONTROL.search(name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    problems = []
    if len(domain.encode()) >= _LONGEST_DOMAIN:
        problems.append(f"runAsUserName's Domain length must be under {_LONGEST_DOMAIN} characters")
    if backslash and not (_NET_BIOS.search(domain) or _DOMAIN.search(domain)):
        problems.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("runAsUserName's User cannot be empty")
    elif len(user.encode()) > _LONGEST_USER:
        problems.append(f"runAsUserName's User length must not be longer than {_LONGEST_USER} characters")
    if _DOTS_AND_SPACES.search(user):
        problems.append("runAsUserName's User cannot contain only periods or spaces")
    if _NOT_IN_USERS.search(user):
        problems.append("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems


def _sysctl_errors(sysctls: Sequence[Object], spec: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    seen = set[str]()
    for i, sysctl in enumerate(sysctls):
        at, name = path.index(i).child("name"), sysctl.get("name", "")
        if not name:
            errors.append(field.required(at))
        elif len(name) > _LONGEST_SYSCTL or not re.fullmatch(_SYSCTL, name):
            detail = f"must have at most {_LONGEST_SYSCTL} characters and match regex {_SYSCTL}"
            errors.append(field.invalid(at, name, detail))
        elif name in seen:
            errors.append(field.duplicate(at, name))
        plain = _dotted(name)
        if spec.get("hostNetwork") and plain.startswith("net."):
            errors.append(field.invalid(at, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and (plain == "kernel.sem" or plain.startswith(_IPC)):
            errors.append(field.invalid(at, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)
    return errors


def _dotted(name: str) -> str:
    """The sysctl's name with dots as separators; in a name that is separated by slashes, slashes and dots are swapped."""
    separator = re.search(r"[./]", name)
    return name.translate({46: "/", 47: "."}) if separator is not None and separator[0] == "/" else name


# ----------------------------------------------------------------------- hosts, systems


def host_errors(spec: Object, path: Path, options: PodOptions) -> ErrorList:
    """The errors in Windows host processes and in user namespaces, which exclude other namespaces of the host."""
    errors = _host_process_errors(spec, path)
    if spec.get("hostUsers") is not False:
        return errors
    detail = Message("when `hostUsers` is false", "hostUsers.false")
    for name, field_name in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name) and not (name == "hostNetwork" and options.host_network_users):
            errors.append(field.forbidden(path.child(field_name), detail))
    return errors + [
        field.forbidden(at.child("volumeDevices"), detail)
        for container, at in _containers(spec, path)
        if container.get("volumeDevices")
    ]


def _host_process(owner: Object) -> bool | None:
    host_process: bool | None = ((owner.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    return host_process


def _host_process_errors(spec: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    whole, containers = _host_process(spec), list(_containers(spec, path))
    count = 0
    for container, at in containers:
        own = _host_process(container)
        if whole is not None and own is not None and whole != own:
            detail = f"pod hostProcess value must be identical if both are specified, was {str(whole).lower()}"
            option_path = at.child("securityContext", "windowsOptions", "hostProcess")
            errors.append(field.invalid(option_path, own, detail))
        count += bool(whole if own is None else own)
    if count and count != len(containers):
        errors.append(field.invalid(path, "", _HOST_PROCESS_ALL))
    if count and not spec.get("hostNetwork"):
        errors.append(field.invalid(path.child("hostNetwork"), False, _HOST_PROCESS_NETWORK))
    return errors


def system_errors(spec: Object, path: Path) -> ErrorList:
    """The errors for fields that the pod's operating system doesn't support."""
    if (system := spec.get("os")) is None:
        return []
    name = system.get("name", "")
    if not name:
        return [field.required(path.child("os", "name"))]
    if name == "linux":
        places = [(spec, path), *_containers(spec, path)]
        return [
            field.forbidden(at.child("securityContext", "windowsOptions"), _NOT_LINUX)
            for owner, at in places
            if (owner.get("securityContext") or {}).get("windowsOptions") is not None
        ]
    if name != "windows":
        return [field.not_supported(path.child("os"), name, ("linux", "windows"))]
    errors: ErrorList = []
    for parent, key in _LINUX_ONLY_POD:
        owner, at = (spec.get(parent) or {}, path.child(parent)) if parent else (spec, path)
        value = owner.get(key)
        if value is not None and (value or key not in _PLAIN):
            errors.append(field.forbidden(at.child(key), _NOT_WINDOWS))
    return errors + [
        field.forbidden(at.child("securityContext", key), _NOT_WINDOWS)
        for container, at in _containers(spec, path)
        for key in _LINUX_ONLY
        if (container.get("securityContext") or {}).get(key) is not None
    ]


# --------------------------------------------------------------------------- annotations


def annotation_errors(annotations: Mapping[str, str], spec: Object, path: Path, options: PodOptions) -> ErrorList:
    """The errors in the annotations of a pod or template, except those of mirror pods; `path` is the annotations'."""
    errors: ErrorList = []
    cost = annotations.get(_DELETION_COST) if options.deletion_cost else None
    if cost is not None and not _is_int32(cost):
        errors.append(field.invalid(path.key(_DELETION_COST), cost, "must be a 32bit integer"))
    for key in sorted(annotations, key=lambda key: (key != _SECCOMP_POD, key)):
        if key == _SECCOMP_POD or key.startswith(_SECCOMP):
            errors += _seccomp_annotation_errors(annotations[key], path.child(key))
    known = {container.get("name") for container, _ in _containers(spec, path)}
    for key, profile in sorted(annotations.items()):
        if not key.startswith(APPARMOR):
            continue
        name = key.removeprefix(APPARMOR)
        if name not in known:
            errors.append(field.invalid(path.key(key), name, "container not found"))
        if profile not in ("", "runtime/default", "unconfined") and not profile.startswith("localhost/"):
            detail = f"invalid AppArmor profile name: {go_quote(profile)}"
            errors.append(field.invalid(path.key(key), profile, detail))
    return errors


def _is_int32(text: str) -> bool:
    # As Go's client wants them: no sign but minus, no leading zeros.
    if not re.fullmatch(r"-?(0|[1-9]\d*)", text, re.ASCII) or text == "-0":
        return False
    try:
        parse_int(text, 32)
    except ValueError:
        return False
    return True


def _seccomp_annotation_errors(profile: str, path: Path) -> ErrorList:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith("localhost/"):
        return descending_path_errors(profile.removeprefix("localhost/"), path)
    return [field.invalid(path, profile, "must be a valid seccomp profile")]


def annotations_and_fields_errors(annotations: Mapping[str, str], spec: Object, path: Path) -> ErrorList:
    """The errors for annotations and fields that name different profiles; `path` is the spec's."""
    context: Object = spec.get("securityContext") or {}
    errors: ErrorList = []
    if (profile := context.get("seccompProfile")) is not None and _SECCOMP_POD in annotations:
        at = path.child("securityContext", "seccompProfile")
        errors += _match_errors("seccomp", annotations[_SECCOMP_POD], profile, at)
    for container, at in _containers(spec, path):
        profile, key = (container.get("securityContext") or {}).get("seccompProfile"), _SECCOMP + container["name"]
        if profile is not None and key in annotations:
            errors += _match_errors("seccomp", annotations[key], profile, at.child("securityContext", "seccompProfile"))
    if (spec.get("os") or {}).get("name") == "windows":
        return errors
    for container, at in _containers(spec, path):
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        profile, key = context.get("appArmorProfile") if own is None else own, APPARMOR + container["name"]
        if profile is not None and key in annotations:
            errors += _match_errors(
                "apparmor", annotations[key], profile, at.child("securityContext", "appArmorProfile")
            )
    return errors


def _match_errors(system: str, annotation: str, profile: Object, path: Path) -> ErrorList:
    kind = profile.get("type")
    if kind in ("Unconfined", "RuntimeDefault"):
        defaults = ("runtime/default", "docker/default") if system == "seccomp" else ("runtime/default",)
        same = annotation == "unconfined" if kind == "Unconfined" else annotation in defaults
        return [] if same else [_mismatch(system, "type", path.child("type"))]
    if kind != "Localhost":
        return []
    if not annotation.startswith("localhost/"):
        return [_mismatch(system, "type", path.child("type"))]
    if annotation.removeprefix("localhost/") != profile.get("localhostProfile"):
        return [_mismatch(system, "profile", path.child("localhostProfile"))]
    return []


def _mismatch(system: str, what: str, path: Path) -> field.Error:
    return field.forbidden(path, _MISMATCH.format(system, what))


def annotation_update_errors(new: Mapping[str, str], old: Mapping[str, str], path: Path) -> ErrorList:
    """The errors for changed annotations that can't change."""
    errors: ErrorList = []
    for verb, keys in (
        ("remove or update", [key for key in sorted(old) if new.get(key) != old[key]]),
        ("add", [key for key in sorted(new) if key not in old]),
    ):
        for key in keys:
            if key.startswith(APPARMOR):
                errors.append(field.forbidden(path.key(key), f"may not {verb} AppArmor annotations"))
    return errors
