"""Custom resources: what they do beside their schema.

Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/{strategy.go,status_strategy.go,validator.go}.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import field

from fakeapiserver.apimachinery import field as field_errors
from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path, invalid
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata, same
from fakeapiserver.apimachinery.patch.go_format import go_type_verb, go_value
from fakeapiserver.registry.apiextensions.custom_kind import CustomKind
from fakeapiserver.registry.generic.strategy import Strategy, spec_changed
from fakeapiserver.registry.generic.strategy_facts import MetaCheck

_METADATA: Final = Path("metadata")
_MAX_INT32: Final = 2**31 - 1
_STANDARD_FINALIZERS: Final = frozenset(("orphan", "foregroundDeletion", "kubernetes"))


class CustomResourceStrategy(Strategy, kw_only=True):
    """The strategy of one served version. `scale` is its scale subresource (specReplicasPath, statusReplicasPath, labelSelectorPath), empty
    without one. selectable_fields are those of all served versions, `served_fields` those that selectors of this one may
    name."""

    kind: CustomKind
    namespaced: bool
    scale: Mapping[str, Any] = field(default_factory=dict)
    served_fields: Sequence[str] = ()
    # The status that creation drops comes back by default when the object is read.
    presets_status: bool = False
    # Validated below, because an object of another kind has no other error.
    create_checks: tuple[MetaCheck, ...] = ("spec",)
    update_meta_checks: tuple[MetaCheck, ...] = ()
    status_meta_checks: tuple[MetaCheck, ...] = ()
    status_reset_fields: tuple[str, ...] = ("spec", "metadata")
    status_disowned_until: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"v1.35": ("spec",)})

    def raises_generation(self, obj: Object, old: Object) -> bool:
        ignored = ("metadata", "kind", "apiVersion")
        return spec_changed(obj, old, ignored) or any(
            not same(value, old.get(key), exact=True) for key, value in obj.items() if key not in ignored
        )

    def shows_more_than_stored(self, obj: Object) -> bool:
        return self.presets_status

    def field_labels(self, namespaced: bool) -> Mapping[str, str]:
        unserved = self.selectable_fields.keys() - set(self.served_fields)
        if not namespaced:
            unserved.add("metadata.namespace")
        return {label: meaning for label, meaning in super().field_labels(namespaced).items() if label not in unserved}

    def prepare_for_subresource_update(self, subresource: str, obj: Object, old: Object) -> None:
        self.prepare_for_update(obj, old)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Only status and managedFields come from the request; metadata stays as it is stored."""
        owners = metadata(obj).get("managedFields")
        kept = dict(old)
        if "status" in obj:
            kept["status"] = obj["status"]
        else:
            kept.pop("status", None)
        revision = metadata(obj).get("resourceVersion")
        obj.clear()
        obj.update(kept)
        obj["metadata"] = {**metadata(old), "managedFields": owners, "resourceVersion": revision}
        for name in ("managedFields", "resourceVersion"):
            if obj["metadata"][name] is None:
                del obj["metadata"][name]

    # ------------------------------------------------------------- validation

    def validate(self, obj: Object) -> ErrorList:
        if errors := self.kind.type_errors(obj):
            return self._of_another_kind(errors, obj, None)
        errors = names.validate_object_meta(metadata(obj), self.namespaced, self.validate_name, _METADATA)
        return self._with_rules(errors + self._content_errors(obj, None) + self._shape_errors(obj, None), obj, None)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if errors := self.kind.type_errors(obj):
            return self._of_another_kind(errors, obj, old)
        errors = names.validate_object_meta_update(metadata(obj), metadata(old), _METADATA)
        return self._with_rules(errors + self._content_errors(obj, old) + self._shape_errors(obj, old), obj, old)

    def validate_subresource_update(self, subresource: str, obj: Object, old: Object) -> ErrorList:
        return self.validate_update(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        """The errors in the status and in lists; the rest of the object isn't checked."""
        if errors := self.kind.type_errors(obj):
            return errors
        errors = names.validate_object_meta_update(metadata(obj), metadata(old), _METADATA)
        return self._with_rules(errors + self._status_errors(obj, old), obj, old)

    def _of_another_kind(self, errors: ErrorList, obj: Object, old: Object | None) -> ErrorList:
        """The errors in an object that names another kind: its values aren't checked, only embedded objects, lists and the schema's
        rules, if all values have their types."""
        if any(error.reason == "FieldValueTypeInvalid" for error in self._content_errors(obj, old)):
            return errors
        return self._with_rules(errors + self._shape_errors(obj, old), obj, old)

    def _status_errors(self, obj: Object, old: Object) -> ErrorList:
        structural = self.kind.structural
        errors = structural.status_errors(obj, old) if "status" in obj else []
        return errors + self._scale_status_errors(obj) + structural.list_errors(obj, old)

    def _content_errors(self, obj: Object, old: Object | None) -> ErrorList:
        errors = self.kind.structural.value_errors(obj, old)
        return errors + self._scale_spec_errors(obj) + self._scale_status_errors(obj)

    def _shape_errors(self, obj: Object, old: Object | None) -> ErrorList:
        structural = self.kind.structural
        return structural.embedded_errors(obj) + structural.list_errors(obj, old)

    def _with_rules(self, errors: ErrorList, obj: Object, old: Object | None) -> ErrorList:
        """The errors, with those of the schema's rules, which are run on objects that are valid otherwise."""
        return errors + self.kind.structural.rule_errors(obj, old, errors)[0]

    def _scale_spec_errors(self, obj: Object) -> ErrorList:
        return _replicas_errors(obj, self.scale["specReplicasPath"]) if self.scale else []

    def _scale_status_errors(self, obj: Object) -> ErrorList:
        if not self.scale:
            return []
        errors = _replicas_errors(obj, self.scale["statusReplicasPath"])
        path = self.scale.get("labelSelectorPath")
        if path is not None:
            try:
                nested(obj, path, str)
            except ValueError as error:
                errors.append(invalid(path, "", str(error)))
        return errors

    # --------------------------------------------------------------- warnings

    def validation_warnings(self, obj: Object, old: Object, subresource: str) -> list[str]:
        structural = self.kind.structural
        if not structural.has_rules or self.kind.type_errors(obj):
            return []
        status = subresource == "status"
        errors = self._status_errors(obj, old) if status else self._content_errors(obj, old)
        errors += [] if status else self._shape_errors(obj, old)
        return structural.rule_errors(obj, old, errors)[1]

    def warnings_on_create(self, obj: Object) -> list[str]:
        return _finalizer_warnings(metadata(obj).get("finalizers") or ())

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        known = metadata(old).get("finalizers") or ()
        return _finalizer_warnings(name for name in metadata(obj).get("finalizers") or () if name not in known)


def _finalizer_warnings(finalizers: Any) -> list[str]:
    warnings: list[str] = []
    for name in sorted(set(finalizers)):
        beginning = f"metadata.finalizers: {go_quote(name)}: "
        warnings += [beginning + text for text in names.is_qualified_name(name)]
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            advice = f"prefer a domain-qualified finalizer name{path} to avoid accidental conflicts"
            warnings.append(f"{beginning}{advice} with other finalizer writers")
    return warnings


def _replicas_errors(obj: Object, path: str) -> ErrorList:
    try:
        value = nested(obj, path, int)
    except ValueError as error:
        return [invalid(path, 0, str(error))]
    if value is not None and value < 0:
        return [invalid(path, value, "should be a non-negative integer")]
    if value is not None and value > _MAX_INT32:
        return [field_errors.invalid(path, value, f"should be less than or equal to {_MAX_INT32}")]
    return []


def nested(obj: Object, path: str, wanted: type) -> Any:
    """The value at a path such as `.spec.replicas`, None without one; Raises ValueError in Go's words for a value of another type."""
    value: Any = obj
    names_on_path = path.removeprefix(".").split(".")
    for i, name in enumerate(names_on_path):
        if value is None:
            return None
        if not isinstance(value, dict):
            at = ".".join(names_on_path[: i + 1])
            raise ValueError(_accessor_error(at, value, "map[string]interface{}"))
        if name not in value:
            return None
        value = value[name]
    if type(value) is not wanted:
        raise ValueError(_accessor_error(".".join(names_on_path), value, "int64" if wanted is int else "string"))
    return value


def _accessor_error(at: str, value: Any, wanted: str) -> str:
    go_type = "<nil>" if value is None else go_type_verb(value)
    return f".{at} accessor error: {go_value(value)} is of the type {go_type}, expected {wanted}"
