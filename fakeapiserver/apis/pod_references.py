"""The secrets and config maps that a pod names. Upstream: k8s.io/kubernetes/pkg/api/pod/util.go (VisitPodSecretNames
and others).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_Object = Mapping[str, Any]
# Volumes of a pod that name a secret of its namespace: where.
SECRET_REFS: Final = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")


def secrets_and_config_maps(spec: _Object) -> Iterator[tuple[str, str]]:
    """`("secrets", NAME)` and `("configmaps", NAME)`, also more than once."""
    for kind, name in _references(spec):
        if name:
            yield kind, name


def _references(spec: _Object) -> Iterator[tuple[str, str]]:
    for ref in spec.get("imagePullSecrets") or ():
        yield "secrets", ref.get("name", "")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            yield from _of_container(container)
    for volume in spec.get("volumes") or ():
        yield from _of_volume(volume)


def _of_container(container: _Object) -> Iterator[tuple[str, str]]:
    for source in container.get("envFrom") or ():
        yield "secrets", (source.get("secretRef") or {}).get("name", "")
        yield "configmaps", (source.get("configMapRef") or {}).get("name", "")
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield "secrets", (source.get("secretKeyRef") or {}).get("name", "")
        yield "configmaps", (source.get("configMapKeyRef") or {}).get("name", "")


def _of_volume(volume: _Object) -> Iterator[tuple[str, str]]:
    yield "secrets", (volume.get("azureFile") or {}).get("secretName", "")
    yield "secrets", (volume.get("secret") or {}).get("secretName", "")
    yield "configmaps", (volume.get("configMap") or {}).get("name", "")
    yield "secrets", ((volume.get("csi") or {}).get("nodePublishSecretRef") or {}).get("name", "")
    for kind in SECRET_REFS:
        yield "secrets", ((volume.get(kind) or {}).get("secretRef") or {}).get("name", "")
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield "secrets", (source.get("secret") or {}).get("name", "")
        yield "configmaps", (source.get("configMap") or {}).get("name", "")
