"""The checks of the Pod Security Standards: a function each, and the table of the levels and versions that apply it.

Upstream: k8s.io/pod-security-admission/policy/check_*.go.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object


class Finding(NamedTuple):
    """Why a pod is forbidden: in short, and in detail."""

    reason: str
    detail: str


class Pod:
    """A pod or a pod template as the checks look at it. `containers` are all there are, in the order of their start."""

    __slots__ = ("annotations", "containers", "security", "spec")

    def __init__(self, metadata: Object, spec: Object) -> None:
        self.spec = spec
        self.annotations: dict[str, str] = metadata.get("annotations") or {}
        self.security: Object = spec.get("securityContext") or {}
        self.containers: list[Object] = [
            container
            for field in ("initContainers", "containers", "ephemeralContainers")
            for container in spec.get(field) or ()
        ]

    @property
    def is_windows(self) -> bool:
        return bool((self.spec.get("os") or {}).get("name") == "windows")

    @property
    def has_user_namespace(self) -> bool:
        return self.spec.get("hostUsers") is False

    def names(self, wrong: Callable[[Object], Any]) -> list[str]:
        """The containers of whose security context that is true."""
        return [container["name"] for container in self.containers if wrong(_security(container))]


CheckPod = Callable[[Pod], Finding | None]


class Version(NamedTuple):
    """A check since a minor version. It replaces the checks in `overrides`, which are weaker."""

    minimum: int
    check: CheckPod
    overrides: tuple[str, ...] = ()


def _security(container: Object) -> Object:
    return container.get("securityContext") or {}


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _containers(names: Sequence[str]) -> str:
    return f"{_plural('container', len(names))} {_quoted(names)}"


def _setters(pod: object, names: Sequence[str]) -> list[str]:
    """Returns the subjects of a message: the pod, containers."""
    return (["pod"] if pod else []) + ([_containers(names)] if names else [])


def _unless(exempt: Callable[[Pod], bool], check: CheckPod) -> CheckPod:
    return lambda pod: None if exempt(pod) else check(pod)


_not_windows = partial(_unless, lambda pod: pod.is_windows)
_not_in_user_namespace = partial(_unless, lambda pod: pod.has_user_namespace)


# ------------------------------------------------------------------ baseline


def _app_armor_profile(pod: Pod) -> Finding | None:
    values = set[str]()

    def wrong(security: Object) -> bool:
        profile = security.get("appArmorProfile")
        if profile is None or profile.get("type") in ("RuntimeDefault", "Localhost"):
            return False
        values.add(profile.get("type", ""))
        return True

    setters = _setters(wrong(pod.security), pod.names(wrong))
    annotations = sorted(
        f"{key}={go_quote(value)}"
        for key, value in pod.annotations.items()
        if key.startswith("container.apparmor.security.beta.kubernetes.io/")
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if annotations:
        setters.append(_plural("annotation", len(annotations)))
    if not setters:
        return None
    forbidden = [*sorted(values), *annotations]
    detail = f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(forbidden)}"
    return Finding(_plural("forbidden AppArmor profile", len(forbidden)), detail)


_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)


def _added_capabilities(security: Object, allowed: frozenset[str]) -> set[str]:
    return set((security.get("capabilities") or {}).get("add") or ()) - allowed


def _must_not_add(pod: Pod, allowed: frozenset[str]) -> str:
    names = pod.names(lambda security: _added_capabilities(security, allowed))
    if not names:
        return ""
    values = set[str]().union(*(_added_capabilities(_security(container), allowed) for container in pod.containers))
    return f"{_containers(names)} must not include {_quoted(sorted(values))} in securityContext.capabilities.add"


def _capabilities_baseline(pod: Pod) -> Finding | None:
    detail = _must_not_add(pod, _CAPABILITIES)
    return Finding("non-default capabilities", detail) if detail else None


def _host_namespaces(pod: Pod) -> Finding | None:
    fields = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)]
    return Finding("host namespaces", ", ".join(fields)) if fields else None


def _host_path_volumes(pod: Pod) -> Finding | None:
    names = [volume["name"] for volume in pod.spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Finding("hostPath volumes", f"{_plural('volume', len(names))} {_quoted(names)}") if names else None


def _host_ports(pod: Pod) -> Finding | None:
    names, ports = list[str](), set[str]()
    for container in pod.containers:
        host_ports = {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        if host_ports:
            names.append(container["name"])
            ports |= host_ports
    if not names:
        return None
    use = "uses" if len(names) == 1 else "use"
    detail = f"{_containers(names)} {use} {_plural('hostPort', len(ports))} {', '.join(sorted(ports))}"
    return Finding("hostPort", detail)


def _host_probes_and_host_lifecycle(pod: Pod) -> Finding | None:
    names, hosts = set[str](), set[str]()
    for container in pod.containers:
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
        host_names = {
            (handler.get(action) or {}).get("host", "")
            for handler in handlers
            if handler
            for action in ("httpGet", "tcpSocket")
        } - {""}
        if host_names:
            names.add(container["name"])
            hosts |= host_names
    if not names:
        return None
    use = "uses" if len(names) == 1 else "use"
    what = _plural("probe or lifecycle host", len(hosts))
    return Finding("probe or lifecycle host", f"{_containers(sorted(names))} {use} {what} {_quoted(sorted(hosts))}")


def _privileged(pod: Pod) -> Finding | None:
    names = pod.names(lambda security: security.get("privileged"))
    return (
        Finding("privileged", f"{_containers(names)} must not set securityContext.privileged=true") if names else None
    )


def _proc_mount(pod: Pod) -> Finding | None:
    values = set[str]()

    def wrong(security: Object) -> bool:
        mount = security.get("procMount") or "Default"
        values.add(mount)
        return bool(mount != "Default")

    names = pod.names(wrong)
    if not names:
        return None
    detail = f"{_containers(names)} must not set securityContext.procMount to {_quoted(sorted(values - {'Default'}))}"
    return Finding("procMount", detail)


def _seccomp_annotations(pod: Pod) -> Finding | None:
    keys = ["seccomp.security.alpha.kubernetes.io/pod"]
    keys += [f"container.seccomp.security.alpha.kubernetes.io/{container['name']}" for container in pod.containers]
    annotations = {
        f"{key}={go_quote(value)}"
        for key in keys
        if (value := pod.annotations.get(key)) is not None
        and value not in ("runtime/default", "docker/default")
        and not value.startswith("localhost/")
    }
    if not annotations:
        return None
    return Finding(
        "seccompProfile", f"forbidden {_plural('annotation', len(annotations))} {', '.join(sorted(annotations))}"
    )


def _is_good_seccomp(profile: Object) -> bool:
    return profile.get("type") in ("RuntimeDefault", "Localhost")


def _seccomp_profile(pod: Pod) -> Finding | None:
    """Profiles that are set must be good ones."""
    values = set[str]()

    def wrong(security: Object) -> bool:
        profile = security.get("seccompProfile")
        if profile is None or _is_good_seccomp(profile):
            return False
        values.add(profile.get("type", ""))
        return True

    setters = _setters(wrong(pod.security), pod.names(wrong))
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set securityContext.seccompProfile.type to {_quoted(sorted(values))}"
    return Finding("seccompProfile", detail)


_SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})


def _selinux_options(types: frozenset[str], pod: Pod) -> Finding | None:
    bad, others = set[str](), set[str]()

    def wrong(security: Object) -> bool:
        options = security.get("seLinuxOptions") or {}
        type_ = options.get("type", "")
        bad.update({type_} - types)
        set_too = {field for field in ("user", "role") if options.get(field)}
        others.update(set_too)
        return type_ not in types or bool(set_too)

    setters = _setters(wrong(pod.security), pod.names(wrong))
    if not setters:
        return None
    data = [f"{_plural('type', len(bad))} {_quoted(sorted(bad))}"] if bad else []
    data += [f"{field} may not be set" for field in ("user", "role") if field in others]
    detail = f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
    return Finding("seLinuxOptions", detail)


_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_syncookies",
    }
)
_SYSCTLS_27: Final = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29: Final = _SYSCTLS_27 | {
    f"net.ipv4.tcp_{name}" for name in ("keepalive_time", "fin_timeout", "keepalive_intvl", "keepalive_probes")
}
_SYSCTLS_32: Final = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def _sysctls(allowed: frozenset[str], pod: Pod) -> Finding | None:
    names = [sysctl["name"] for sysctl in pod.security.get("sysctls") or () if sysctl["name"] not in allowed]
    return Finding("forbidden sysctls", ", ".join(names)) if names else None


def _windows_host_process(pod: Pod) -> Finding | None:
    def wrong(security: Object) -> bool:
        return bool((security.get("windowsOptions") or {}).get("hostProcess"))

    setters = _setters(wrong(pod.security), pod.names(wrong))
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set securityContext.windowsOptions.hostProcess=true"
    return Finding("hostProcess", detail)


# ---------------------------------------------------------------- restricted


def _allow_privilege_escalation(pod: Pod) -> Finding | None:
    names = pod.names(lambda security: security.get("allowPrivilegeEscalation") is not False)
    if not names:
        return None
    detail = f"{_containers(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Finding("allowPrivilegeEscalation != false", detail)


def _capabilities_restricted(pod: Pod) -> Finding | None:
    keep = pod.names(lambda security: "ALL" not in ((security.get("capabilities") or {}).get("drop") or ()))
    details = [f'{_containers(keep)} must set securityContext.capabilities.drop=["ALL"]'] if keep else []
    if adds := _must_not_add(pod, frozenset({"NET_BIND_SERVICE"})):
        details.append(adds)
    return Finding("unrestricted capabilities", "; ".join(details)) if details else None


_ALLOWED_VOLUMES: Final = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)


def _restricted_volumes(pod: Pod) -> Finding | None:
    names, types = list[str](), set[str]()
    for volume in pod.spec.get("volumes") or ():
        sources = [field for field, source in volume.items() if field != "name" and source is not None]
        if not _ALLOWED_VOLUMES.intersection(sources):
            names.append(volume["name"])
            types.add(sources[0] if sources else "unknown")
    if not names:
        return None
    use = "uses" if len(names) == 1 else "use"
    what = _plural("restricted volume type", len(types))
    detail = f"{_plural('volume', len(names))} {_quoted(names)} {use} {what} {_quoted(sorted(types))}"
    return Finding("restricted volume types", detail)


def _run_as_non_root(pod: Pod) -> Finding | None:
    """Requires runAsNonRoot: of the pod for all containers, or of each of them."""
    whole = pod.security.get("runAsNonRoot")
    setters = _setters(whole is False, pod.names(lambda security: security.get("runAsNonRoot") is False))
    if setters:
        detail = f"{' and '.join(setters)} must not set securityContext.runAsNonRoot=false"
        return Finding("runAsNonRoot != true", detail)
    silent = [] if whole else pod.names(lambda security: security.get("runAsNonRoot") is None)
    if not silent:
        return None
    return Finding("runAsNonRoot != true", f"pod or {_containers(silent)} must set securityContext.runAsNonRoot=true")


def _run_as_user(pod: Pod) -> Finding | None:
    def is_root(security: Object) -> bool:
        return security.get("runAsUser") == 0

    setters = _setters(is_root(pod.security), pod.names(is_root))
    return Finding("runAsUser=0", f"{' and '.join(setters)} must not set runAsUser=0") if setters else None


def _seccomp_profile_restricted(pod: Pod) -> Finding | None:
    """There must be one, and a good one."""
    if (finding := _seccomp_profile(pod)) is not None:
        return finding
    silent = [] if pod.security.get("seccompProfile") else pod.names(lambda sc: sc.get("seccompProfile") is None)
    if not silent:
        return None
    types = '"RuntimeDefault" or "Localhost"'
    return Finding(
        "seccompProfile", f"pod or {_containers(silent)} must set securityContext.seccompProfile.type to {types}"
    )


BASELINE: Final[dict[str, tuple[Version, ...]]] = {
    "appArmorProfile": (Version(0, _app_armor_profile),),
    "capabilities_baseline": (Version(0, _capabilities_baseline),),
    "hostNamespaces": (Version(0, _host_namespaces),),
    "hostPathVolumes": (Version(0, _host_path_volumes),),
    "hostPorts": (Version(0, _host_ports),),
    "hostProbesAndHostLifecycle": (Version(34, _host_probes_and_host_lifecycle),),
    "privileged": (Version(0, _privileged),),
    "procMount": (Version(0, _proc_mount), Version(35, _not_in_user_namespace(_proc_mount))),
    "seLinuxOptions": (
        Version(0, partial(_selinux_options, _SELINUX_TYPES)),
        Version(31, partial(_selinux_options, _SELINUX_TYPES | {"container_engine_t"})),
    ),
    "seccompProfile_baseline": (Version(0, _seccomp_annotations), Version(19, _seccomp_profile)),
    "sysctls": (
        Version(0, partial(_sysctls, _SYSCTLS)),
        Version(27, partial(_sysctls, _SYSCTLS_27)),
        Version(29, partial(_sysctls, _SYSCTLS_29)),
        Version(32, partial(_sysctls, _SYSCTLS_32)),
    ),
    "windowsHostProcess": (Version(0, _windows_host_process),),
}

RESTRICTED: Final[dict[str, tuple[Version, ...]]] = {
    "allowPrivilegeEscalation": (
        Version(8, _allow_privilege_escalation),
        Version(25, _not_windows(_allow_privilege_escalation)),
    ),
    "capabilities_restricted": (
        Version(22, _capabilities_restricted, ("capabilities_baseline",)),
        Version(25, _not_windows(_capabilities_restricted), ("capabilities_baseline",)),
    ),
    "procMount_restricted": (Version(35, _proc_mount, ("procMount",)),),
    "restrictedVolumes": (Version(0, _restricted_volumes, ("hostPathVolumes",)),),
    "runAsNonRoot": (Version(0, _run_as_non_root), Version(35, _not_in_user_namespace(_run_as_non_root))),
    "runAsUser": (Version(23, _run_as_user), Version(35, _not_in_user_namespace(_run_as_user))),
    "seccompProfile_restricted": (
        Version(19, _seccomp_profile_restricted, ("seccompProfile_baseline",)),
        Version(25, _not_windows(_seccomp_profile_restricted), ("seccompProfile_baseline",)),
    ),
}
