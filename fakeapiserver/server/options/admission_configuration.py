"""--admission-control-config-file: what plugins are configured with.

Upstream: k8s.io/apiserver/pkg/admission/config.go.
"""

from pathlib import Path
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import yaml
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind

_KIND: Final = ConfigKind(
    "AdmissionConfiguration",
    tuple(f"apiserver.config.k8s.io/{version}" for version in ("v1", "v1alpha1")),
    {
        "AdmissionConfiguration": {"plugins": "[]AdmissionPluginConfiguration"},
        "AdmissionPluginConfiguration": {"name": "string", "path": "string", "configuration": "Raw"},
    },
)


def read_admission_configuration(path: Path | None) -> dict[str, Object]:
    """Plugin name -> its configuration, from the file itself or from the one it names (relative to it). ValueError, OSError in one
    line each."""
    if path is None:
        return {}
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(
            f"failed to apply admission: failed to read plugin config: unable to read admission control configuration from "
            f'"{path}" [open {path}: {(error.strerror or "").lower()}]'
        ) from None
    try:
        document = _KIND.decode(data)
    except ValueError as error:
        raise ValueError(f"failed to apply admission: failed to read plugin config: {error}") from None
    configurations: dict[str, Object] = {}
    for plugin in document.get("plugins") or ():
        if plugin.get("configuration") is not None:
            configurations.setdefault(plugin.get("name", ""), plugin["configuration"])
        elif plugin.get("path"):
            configurations.setdefault(plugin.get("name", ""), _read(path.parent / plugin["path"]))
    return configurations


def _read(path: Path) -> Object:
    try:
        document = yaml.decode(path.read_bytes())
    except OSError as error:
        raise ValueError(f"Couldn't open admission plugin configuration {path}: {error.strerror}") from None
    if not isinstance(document, dict):
        raise ValueError(f"the admission plugin configuration {path} must be a mapping")
    return document
