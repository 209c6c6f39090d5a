"""Warnings about pods and templates that are accepted.

Upstream: pkg/api/pod/warnings.go, pkg/api/persistentvolumeclaim/util.go.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.node.label_warnings import DEPRECATED_NODE_LABELS, node_term_warnings
from fakeapiserver.registry.core.pod.overlap_warnings import Mapped, PathOverlaps, port_warnings
from fakeapiserver.registry.core.pod.security_validation import apparmor_errors
from fakeapiserver.registry.core.pod.template import CONTAINER_LISTS, containers_of
from fakeapiserver.registry.core.resource_list import is_whole
from fakeapiserver.registry.core.service.ip_warnings import ip_warnings

_CRITICAL: Final = "scheduler.alpha.kubernetes.io/critical-pod"
_SYSCTLS: Final = ("security.alpha.kubernetes.io/sysctls", "security.alpha.kubernetes.io/unsafe-sysctls")
_DEPRECATED_ANNOTATIONS: Final = {
    _CRITICAL: 'non-functional in v1.16+; use the "priorityClassName" field instead',
    **dict.fromkeys(_SYSCTLS, 'non-functional in v1.11+; use the "sysctls" field instead'),
}
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_NO_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NO_APPARMOR: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_MATCHES_NOTHING: Final = "a null labelSelector results in matching no pod"

# Volume source -> since when it is no longer meant to be used.
DEPRECATED_VOLUMES: Final = {
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


def pod_warnings(pod: Object) -> list[str]:
    """Warnings about a pod, except those about its AppArmor annotations (`deprecated_profiles`)."""
    return _warnings(pod, None)


def pod_template_warnings(template: Object, path: Path) -> list[str]:
    """Warnings about a template at `path` (`spec.template` of a deployment)."""
    return _warnings(template, path)


def updated_template_warnings(obj: Object, old: Object, template: Object, path: Path) -> list[str]:
    """Warnings about a template, if the update has raised the generation."""
    if metadata(obj).get("generation") == metadata(old).get("generation"):
        return []
    return pod_template_warnings(template, path)


def claim_warnings(spec: Object, path: Path) -> Iterator[str]:
    """Warnings about a PersistentVolumeClaimSpec."""
    resources = spec.get("resources") or {}
    for kind in ("requests", "limits"):
        yield from _fraction((resources.get(kind) or {}).get("storage"), path.child("resources").child(kind), "storage")


def _warnings(pod: Object, template: Path | None) -> list[str]:
    at = Path("spec") if template is None else template.child("spec")
    annotations_at = (
        Path("metadata.annotations") if template is None else template.child("metadata").child("annotations")
    )
    spec, annotations = pod["spec"], (pod.get("metadata") or {}).get("annotations") or {}
    return [
        *_nodes(spec, at),
        *_spread(spec, at),
        *_annotations(annotations, annotations_at),
        *_volumes(spec, at),
        *_overlapping_paths(spec),
        *_twice_named(spec, at),
        *(w for name in _BYTES for w in _fraction((spec.get("overhead") or {}).get(name), at.child("overhead"), name)),
        *_pod_seccomp(spec, annotations, annotations_at),
        *_containers(spec, at, annotations, annotations_at, in_template=template is not None),
        *_grace(spec, at),
        *_affinity(spec.get("affinity") or {}, at.child("affinity")),
        *_addresses(spec, at),
    ]


def _nodes(spec: Object, path: Path) -> Iterator[str]:
    for label in spec.get("nodeSelector") or ():
        if label in DEPRECATED_NODE_LABELS:
            yield f"{path.child('nodeSelector').key(label)}: {DEPRECATED_NODE_LABELS[label]}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    at = path.child("affinity").child("nodeAffinity")
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for i, term in enumerate(terms):
        yield from node_term_warnings(term, at.child(_REQUIRED).child("nodeSelectorTerms").index(i), preferred=False)
    for i, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        term = weighted.get("preference") or {}
        yield from node_term_warnings(term, at.child(_PREFERRED).index(i).child("preference"), preferred=True)


def _spread(spec: Object, path: Path) -> Iterator[str]:
    for i, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = path.child("topologySpreadConstraints").index(i), constraint.get("topologyKey", "")
        if key in DEPRECATED_NODE_LABELS:
            yield f"{at.child('topologyKey')}: {key} is {DEPRECATED_NODE_LABELS[key]}"
        if "labelSelector" not in constraint:
            yield f"{at.child('labelSelector')}: {_MATCHES_NOTHING}"


def _grace(spec: Object, path: Path) -> Iterator[str]:
    """Warns of a template's negative grace period; a pod's own is set to 1 when it is decoded."""
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path.child('terminationGracePeriodSeconds')}: {text}"


def _affinity(affinity: Object, path: Path) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms, at = affinity.get(kind) or {}, path.child(kind)
        for i, term in enumerate(terms.get(_REQUIRED) or ()):
            if "labelSelector" not in term:
                yield f"{at.child(_REQUIRED).index(i).child('labelSelector')}: {_MATCHES_NOTHING}"
        for i, weighted in enumerate(terms.get(_PREFERRED) or ()):
            if "labelSelector" not in (weighted.get("podAffinityTerm") or {}):
                below = at.child(_PREFERRED).index(i).child("podAffinityTerm")
                yield f"{below.child('labelSelector')}: {_MATCHES_NOTHING}"


def _annotations(annotations: Object, path: Path) -> Iterator[str]:
    for key, text in _DEPRECATED_ANNOTATIONS.items():
        if key in annotations:
            yield f"{path.key(key)}: {text}"


def _pod_seccomp(spec: Object, annotations: Object, path: Path) -> Iterator[str]:
    if "seccompProfile" not in (spec.get("securityContext") or {}) and _SECCOMP_POD in annotations:
        yield f"{path.key(_SECCOMP_POD)}: {_NO_SECCOMP}"


def _addresses(spec: Object, path: Path) -> Iterator[str]:
    for i, address in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from ip_warnings(address, path.child("dnsConfig").child("nameservers").index(i))
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_warnings(alias.get("ip", ""), path.child("hostAliases").index(i).child("ip"))


def _volumes(spec: Object, path: Path) -> Iterator[str]:
    for i, volume in enumerate(spec.get("volumes") or ()):
        at = path.child("volumes").index(i)
        for source, text in DEPRECATED_VOLUMES.items():
            if source in volume:
                yield f"{at.child(_SHOWN.get(source, source))}: {text}"
            if source == "glusterfs":
                claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}
                yield from claim_warnings(
                    claim.get("spec") or {}, at.child("ephemeral").child("volumeClaimTemplate").child("spec")
                )


# Volume source, how it is shown, which field names what it shows.
_ITEM_VOLUMES: Final = (
    ("configMap", "ConfigMap", "name"),
    ("secret", "Secret", "secretName"),
    ("downwardAPI", "DownwardAPI", ""),
)


def _overlapping_paths(spec: Object) -> Iterator[str]:
    """Warns of a volume's items whose paths are the same or below each other."""
    for volume in spec.get("volumes") or ():
        name = go_quote(volume.get("name", ""))
        for kind, go_name, named in _ITEM_VOLUMES:
            if kind in volume:
                source = volume[kind]
                text = f"{go_name} {go_quote(source.get(named, ''))}" if named else go_name
                for pair in PathOverlaps().of(_mapped(source, "")):
                    yield f"volume {name} ({text}): overlapping paths: {pair}"
        if "projected" in volume:
            overlaps = PathOverlaps()
            for source in volume["projected"].get("sources") or ():
                if not source:
                    yield f"volume {name} (Projected) has no sources provided"
                for pair in overlaps.of(_projected(source)):
                    yield f"volume {name} (Projected): overlapping paths: {pair}"


def _mapped(source: Object, shown: str) -> list[Mapped]:
    return [(item.get("path", ""), shown) for item in source.get("items") or ()]


_CERTIFICATE_PATHS: Final = (
    ("certificateChainPath", "chain"),
    ("keyPath", "key"),
    ("credentialBundlePath", "credential bundle"),
)


def _projected(source: Object) -> list[Mapped]:
    for kind, go_name in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if (source.get(kind) or {}).get("items"):
            return _mapped(source[kind], f"{go_name} {go_quote(source[kind].get('name', ''))}")
    if (source.get("downwardAPI") or {}).get("items"):
        return _mapped(source["downwardAPI"], "DownwardAPI")
    if "serviceAccountToken" in source:
        return [(source["serviceAccountToken"].get("path", ""), "ServiceAccountToken")]
    if (bundle := source.get("clusterTrustBundle")) is not None:
        name = bundle.get("name", bundle.get("signerName", ""))
        return [(bundle.get("path", ""), f"ClusterTrustBundle {go_quote(name)}")]
    if (certificate := source.get("podCertificate")) is not None:
        return [
            (certificate[key], f"PodCertificate {what}") for key, what in _CERTIFICATE_PATHS if certificate.get(key)
        ]
    return []


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


def _containers(
    spec: Object, path: Path, annotations: Object, annotations_at: Path, *, in_template: bool
) -> Iterator[str]:
    placed = [
        (container, path.child(name).index(i))
        for name in CONTAINER_LISTS
        for i, container in enumerate(spec.get(name) or ())
    ]
    for container, at in placed:
        if annotations:
            yield from _profiles(spec, container, annotations, annotations_at, in_template=in_template)
        resources = container.get("resources") or {}
        for name in _BYTES:
            for kind in ("limits", "requests"):
                yield from _fraction((resources.get(kind) or {}).get(name), at.child("resources").child(kind), name)
        yield from _hidden_variables(container.get("env") or (), at.child("env"))
    yield from port_warnings(
        (port, at.child("ports").index(i)) for c, at in placed for i, port in enumerate(c.get("ports") or ())
    )


def _profiles(spec: Object, container: Object, annotations: Object, path: Path, *, in_template: bool) -> Iterator[str]:
    """Warns of a container's annotations that fields have replaced."""
    context = container.get("securityContext") or {}
    key = _SECCOMP_CONTAINER + container.get("name", "")
    if "seccompProfile" not in context and key in annotations:
        yield f"{path.key(key)}: {_NO_SECCOMP}"
    key = _APPARMOR + container.get("name", "")
    if in_template and "appArmorProfile" not in context and key in annotations:
        profile = (spec.get("securityContext") or {}).get("appArmorProfile")
        if profile is None or profile != _apparmor_field(annotations[key]):
            yield f"{path.key(key)}: {_NO_APPARMOR}"


def deprecated_profiles(pod: Object) -> Iterator[tuple[str, Object, Object | None]]:
    """The AppArmor annotations of a new pod whose fields it doesn't set: key, container, and the profile to set; None if the
    annotation has no valid one (upstream: applyAppArmorVersionSkew)."""
    spec, annotations = pod["spec"], (pod.get("metadata") or {}).get("annotations") or {}
    if not any(key.startswith(_APPARMOR) for key in annotations) or (spec.get("os") or {}).get("name") == "windows":
        return
    whole = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container in containers_of(spec):
        key = _APPARMOR + container.get("name", "")
        if key not in annotations or (container.get("securityContext") or {}).get("appArmorProfile") is not None:
            continue
        profile = _apparmor_field(annotations[key])
        if profile is not None and apparmor_errors(profile, Path()):
            profile = None
        if profile is None or profile != whole:
            yield key, container, profile


def _apparmor_field(annotation: str) -> Object | None:
    """The field that equals an annotation."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    profile = annotation.removeprefix("localhost/")
    return {"type": "Localhost", "localhostProfile": profile} if profile and profile != annotation else None


def _fraction(text: str | None, path: Path, name: str) -> Iterator[str]:
    if text is not None and not is_whole(text):
        yield f"{path.key(name)}: fractional byte value {go_quote(text)} is invalid, must be an integer"


def _hidden_variables(variables: Iterable[Object], path: Path) -> Iterator[str]:
    seen = set()
    for i, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        if name in seen and ("valueFrom" in variable or value == reference or reference not in value):
            text = f"hides previous definition of {go_quote(name)}, which may be dropped when using apply"
            yield f"{path.index(i)}: {text}"
        seen.add(name)
