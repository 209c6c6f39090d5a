"""Volumes that are to be attached to nodes.

Upstream: pkg/registry/storage/volumeattachment/strategy.go, pkg/apis/storage/validation/validation.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.core.resource_list import round_up_resources
from fakeapiserver.registry.core.volume.persistentvolume import default_persistent_source, volume_spec_errors
from fakeapiserver.registry.core.volume.sources import csi_driver_errors
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.storage.parameters import size_errors

_MAX_MESSAGE: Final = 1024
_SPEC: Final = Path("spec")


class VolumeAttachmentStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        inline = ((obj.get("spec") or {}).get("source") or {}).get("inlineVolumeSpec")
        if inline is not None:
            round_up_resources(inline, ("capacity",))
            default_persistent_source(inline)

    def validate(self, obj: Object) -> ErrorList:
        if self._names_first:
            return self._errors(obj) + _volume_name_errors(obj)
        return self._errors(obj) + self._attacher_errors(obj) + _volume_name_errors(obj)

    def revalidate(self, obj: Object, old: Object) -> ErrorList:
        """Up to 1.35 the names are checked on create only."""
        return self.validate(obj) if self._names_first else self._errors(obj)

    @property
    def _names_first(self) -> bool:
        return self.features.at_least("v1.36")

    def _attacher_errors(self, obj: Object) -> ErrorList:
        attacher, path = obj["spec"].get("attacher", ""), _SPEC.child("attacher")
        errors = csi_driver_errors(attacher, path)
        if not attacher and not self.features.at_least("v1.35"):
            errors += name_errors(attacher, names.is_dns1123_subdomain, path)
        return errors

    def _errors(self, obj: Object) -> ErrorList:
        spec = obj["spec"]
        errors = self._attacher_errors(obj) if self._names_first else _missing_attacher_errors(spec)
        errors += _source_errors(spec.get("source") or {}, _SPEC.child("source"))
        errors += name_errors(spec.get("nodeName", ""), names.is_dns1123_subdomain, _SPEC.child("nodeName"))
        return errors + _attachment_status_errors(obj.get("status") or {}, Path("status"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return immutable_errors(_attachment_form(obj["spec"]), _attachment_form(old["spec"]), Path("spec"))

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return self.revalidate(obj, old)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"attached": False}

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        return [
            metadata(obj).get("name", ""),
            spec.get("attacher", ""),
            (spec.get("source") or {}).get("persistentVolumeName", ""),
            spec.get("nodeName", ""),
            (obj.get("status") or {}).get("attached", False),
            age(obj, now),
        ]


def _missing_attacher_errors(spec: Object) -> ErrorList:
    return [] if spec.get("attacher") else [field.required(_SPEC.child("attacher"))]


def _volume_name_errors(obj: Object) -> ErrorList:
    source = obj["spec"].get("source") or {}
    if (volume := source.get("persistentVolumeName")) is None:
        return []
    return name_errors(volume, names.is_dns1123_subdomain, _SPEC.child("source", "persistentVolumeName"))


def _source_errors(source: Object, path: Path) -> ErrorList:
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if volume is None and inline is None:
        return [field.required(path, detail)]
    if volume is not None and inline is not None:
        return [field.forbidden(path, detail)]
    if volume == "":
        return [field.required(path.child("persistentVolumeName"), "must specify non empty persistentVolumeName")]
    if inline is not None:
        return volume_spec_errors(inline, path.child("inlineVolumeSpec"), "", inline=True)
    return []


def _attachment_status_errors(status: Object, path: Path) -> ErrorList:
    errors = size_errors(status.get("attachmentMetadata") or {}, path.child("attachmentMetadata"))
    for name in ("attachError", "detachError"):
        attachment_error, at = status.get(name) or {}, path.child(name)
        if len(attachment_error.get("message", "").encode()) > _MAX_MESSAGE:
            # Upstream names the limit of the metadata.
            errors.append(field.too_long(at.child("message"), 256 * 1024))
        if (code := attachment_error.get("errorCode", 0)) < 0:
            errors.append(field.invalid(at.child("errorCode"), code, "must be between 0 and 2147483647, inclusive"))
    return errors


def _attachment_form(spec: Object) -> Object:
    """The spec as Go prints its internal type."""
    source = spec.get("source") or {}
    inline = source.get("inlineVolumeSpec")
    return {
        "Attacher": spec.get("attacher", ""),
        "Source": {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": None if inline is None else internal_form(inline, "PersistentVolumeSpec"),
        },
        "NodeName": spec.get("nodeName", ""),
    }
