"""Validates an object that is going to be stored: which rules apply, in which order, and how their errors are shown.

Metadata's rules (apimachinery/names.py) apply to all kinds. A kind adds those of its schema (Kind.validate: custom resources) and
of its strategy (registry/<group>/<resource>.py). `kubectl` shows causes in the order of the checks, so the order is upstream's.

Upstream: k8s.io/apiserver/pkg/registry/rest/{create,update}.go, where Strategy.Validate and ValidateUpdate are called.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import Error, ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import STRICT_ONLY
from fakeapiserver.registry.declared.errors import with_declared
from fakeapiserver.registry.generic.empties import as_sent
from fakeapiserver.registry.generic.kind import Kind
from fakeapiserver.registry.generic.legacy_messages import reworded_errors
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.generic.strategy_facts import MetaCheck

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.schema.decoders import Empties, Steps

_METADATA: Final = Path("metadata")


class Validator(Struct, frozen=True):
    """The rules for objects of one kind in the version of the request: `strategy` is that version's (Strategy.in_version).

    `empties` are the empty lists and maps that decoding has dropped from an object: some rules, and the values in many errors,
    distinguish them from absent ones."""

    strategy: Strategy
    kind: Kind
    namespaced: bool

    def create_errors(self, obj: Object, empties: "Empties") -> ErrorList:
        """The errors in a new object (upstream: rest.BeforeCreate)."""
        sent = self._sent(obj, None, empties)
        errors: ErrorList = []
        for check in self.strategy.create_checks:
            errors += self._check(check, sent, {})
            if check == "create":
                errors += self.kind.validate(obj, None)
        # The rules for all kinds come last, since a kind's own errors are worded more precisely. Only those for names are not yet checked.
        if errors or "create" not in self.strategy.create_checks:
            return errors or self._common_errors(obj)
        return names.validate_names(metadata(obj), names.path_segment_name, _METADATA)

    def update_errors(self, subresource: str, new: Object, old: Object, empties: "Empties") -> ErrorList:
        """The errors in an update (upstream: rest.BeforeUpdate)."""
        # Upstream checks metadata for every kind and again in the kind's own validation; both errors are shown.
        errors = self._common_errors(new)
        errors += names.validate_object_meta_update(metadata(new), metadata(old), _METADATA)
        is_meta_valid = not errors
        sent = self._sent(new, old, empties)
        checks = self.strategy.meta_checks(subresource)
        for check in checks if "own" in checks else (*checks, "own"):
            if check == "own":
                errors += self.kind.validate(new, old) + self._own_errors(subresource, sent, old, empties)
            else:
                errors += self._check(check, sent, old, is_meta_valid=is_meta_valid)
        return errors

    def _sent(self, obj: Object, old: Object | None, empties: "Empties") -> Object:
        """The object with the empty lists and maps that were sent."""
        if not empties:
            return obj
        sent = as_sent(obj, empties)
        self.strategy.drop_disabled(sent, old)
        return sent

    def _common_errors(self, obj: Object) -> ErrorList:
        return names.validate_object_meta(metadata(obj), self.namespaced, names.path_segment_name, _METADATA)

    def _check(self, check: MetaCheck, new: Object, old: Object, *, is_meta_valid: bool = False) -> ErrorList:
        """`is_meta_valid`: by the rules for the metadata of all kinds, which are not asked again."""
        if check == "spec":
            return self.strategy.revalidate(new, old) if old else self.strategy.validate(new)
        if check == "status":
            return self.strategy.validate_status(new)
        if check == "immutable":
            return self.strategy.validate_immutable(new, old)
        if check == "create":
            return self._create_meta_errors(new, is_meta_valid=is_meta_valid)
        if is_meta_valid:
            return self._finalizer_errors(new)
        errors = names.validate_object_meta_update(metadata(new), metadata(old), _METADATA)
        return errors + self._finalizer_errors(new)

    def _create_meta_errors(self, obj: Object, *, is_meta_valid: bool) -> ErrorList:
        """The kind's own rules for a new object's metadata."""
        meta = metadata(obj)
        judged = self.strategy.validates_generate_name or not self.strategy.features.at_least("v1.35")
        if not judged and "generateName" in meta:
            meta = {key: value for key, value in meta.items() if key != "generateName"}
        name_rule = self.strategy.name_rule(obj)
        if is_meta_valid:
            return names.validate_names(meta, name_rule, _METADATA) + self._finalizer_errors(obj)
        return names.validate_object_meta(meta, self.namespaced, name_rule, _METADATA) + self._finalizer_errors(obj)

    def _finalizer_errors(self, obj: Object) -> ErrorList:
        if self.kind.custom or not self.strategy.kube_finalizers:
            return []
        return names.validate_kube_finalizers(metadata(obj), _METADATA)

    def _own_errors(self, subresource: str, sent: Object, old: Object, empties: "Empties") -> ErrorList:
        """The errors of the kind's own rules for an update. When these compare with the old object, an empty list equals an
        absent one; but the errors show which it was."""
        if not empties or self.strategy.tells_empties:
            return self._change_errors(subresource, sent, old)
        own = self._change_errors(subresource, sent, as_sent(old, empties))
        sent_errors = self._change_errors(subresource, sent, old) if own else []
        return sent_errors if [error.field for error in sent_errors] == [error.field for error in own] else own

    def _change_errors(self, subresource: str, new: Object, old: Object) -> ErrorList:
        if subresource == "status":
            return self.strategy.validate_status_update(new, old)
        if subresource not in ("", "scale"):
            return self.strategy.validate_subresource_update(subresource, new, old)
        return self.strategy.validate_update(new, old)


def as_reported(errors: ErrorList, strategy: Strategy, obj: Object, empties: "Empties", kind: Kind) -> ErrorList:
    """The errors in the words of the server's version, with the values that were sent."""
    if not strategy.features.enabled("StrictIPCIDRValidation") and strategy.takes_loose_addresses(obj):
        errors = [error for error in errors if error.detail not in STRICT_ONLY]
    if empties:
        sent = {_text(steps): empty for steps, empty in empties.items()}
        errors = [_with_empty(error, sent) for error in errors]
    if strategy.declares_rules:
        group_version = kind.gvk.group_version
        errors = with_declared(errors, kind.arrange(obj), group_version, strategy.features) if errors else errors
    return reworded_errors(errors, strategy.features.version)


def _with_empty(error: Error, empties: Mapping[str, Any]) -> Error:
    """The error with its value, if that is an empty list or map that decoding has dropped."""
    return replace(error, value=empties[error.field]) if error.value is None and error.field in empties else error


def _text(steps: "Steps") -> str:
    """("spec", "ports", 0) -> "spec.ports[0]"."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
