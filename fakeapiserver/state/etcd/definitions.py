"""CustomResourceDefinitions as API servers store them: in v1beta1, although no API server serves that version since Kubernetes 1.22.

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/{v1,v1beta1}/{conversion,defaults}.go.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object

STORED: Final = ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition")
_SERVED: Final = "apiextensions.k8s.io/v1"
_MOVED: Final = frozenset(
    ("version", "validation", "subresources", "additionalPrinterColumns", "selectableFields", "preserveUnknownFields")
)


class _Version(Struct, rename="camel"):
    """The fields of a version that v1 has in another form."""

    additional_printer_columns: list[dict[str, Any]] | None = None


class _Conversion(Struct, rename="camel"):
    strategy: str = "None"
    webhook_client_config: dict[str, Any] | None = None
    conversion_review_versions: list[str] | None = None


class _Spec(Struct, rename="camel"):
    """The fields of v1beta1 that v1 doesn't have, or has elsewhere. What is set beside the versions is true of each."""

    version: str = ""
    versions: list[dict[str, Any]] | None = None
    validation: dict[str, Any] | None = None
    subresources: dict[str, Any] | None = None
    additional_printer_columns: list[dict[str, Any]] | None = None
    selectable_fields: list[dict[str, Any]] | None = None
    preserve_unknown_fields: bool | None = None
    conversion: _Conversion | None = None


def to_v1(definition: Object) -> Object:
    """Returns a stored definition in v1. Raises ValueError, with the rest of a sentence, if it is invalid."""
    spec = definition.get("spec")
    try:
        old = msgspec.convert(spec, _Spec)
        listed = old.versions or [{"name": old.version, "served": True, "storage": True}]
        versions = [_version(version, old) for version in listed]
    except msgspec.ValidationError as error:
        raise ValueError(f"is not a valid CustomResourceDefinition: {error}") from None
    assert isinstance(spec, dict)
    new: Object = {"scope": "Namespaced"} | {name: value for name, value in spec.items() if name not in _MOVED}
    new |= {"versions": versions, "conversion": _conversion(old.conversion or _Conversion())}
    if old.preserve_unknown_fields is not False:  # by default, v1beta1 preserves them
        new["preserveUnknownFields"] = True
    return {**definition, "apiVersion": _SERVED, "spec": new}


def _version(version: Object, spec: _Spec) -> Object:
    columns = spec.additional_printer_columns or msgspec.convert(version, _Version).additional_printer_columns
    common = {
        "schema": spec.validation,
        "subresources": spec.subresources,
        "selectableFields": spec.selectable_fields,
        "additionalPrinterColumns": [_column(column) for column in columns] if columns else None,
    }
    return version | {name: value for name, value in common.items() if value is not None}


def _column(column: Object) -> Object:
    return {"jsonPath" if name == "JSONPath" else name: value for name, value in column.items()}


def _conversion(old: _Conversion) -> Object:
    new: Object = {"strategy": old.strategy}
    if old.strategy == "Webhook" and (old.webhook_client_config or old.conversion_review_versions):
        new["webhook"] = {"conversionReviewVersions": old.conversion_review_versions or ["v1beta1"]}
        if old.webhook_client_config:
            new["webhook"]["clientConfig"] = old.webhook_client_config
    return new
