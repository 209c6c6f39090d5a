"""The document that a patch has made of a built-in object, on its way into its kind.

Upstream decodes it from its text, or for a strategic merge patch from a map, and reports errors in the order of decoding.
"""

from contextlib import suppress
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import StatusError, new_invalid
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupKind, GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.patch.texts import go_text
from fakeapiserver.apimachinery.schema import raw_text, unstructured
from fakeapiserver.apimachinery.schema.decoders import Empties
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apis.field_order import field_order
from fakeapiserver.endpoints.negotiation.body import defaulted
from fakeapiserver.endpoints.negotiation.refusals import json_parse_error, type_meta_error
from fakeapiserver.endpoints.negotiation.type_meta import GO_TYPE_META, INTERNAL, checked_type_meta, not_registered
from fakeapiserver.endpoints.verbs.patch_types import PatchType
from fakeapiserver.registry.generic.kind import Kind

_encode: Final = msgspec.json.Encoder().encode
NO_OBJECT = json_parse_error(f"json: cannot unmarshal array into Go value of type {GO_TYPE_META}")


def invalid_patch(shown: str, why: str) -> StatusError:
    """422, with the document that can't be decoded."""
    return new_invalid(GroupKind("", ""), "", [field.invalid("patch", shown, why)])


class BuiltinPatched:
    """`obj` is the document, which `decode` brings into its kind."""

    def __init__(self, change: PatchType, current: Object, kind: Kind) -> None:
        patched = change.apply(current)
        self._change = change
        self._current = current
        self._kind = kind
        # Decoding replaces the root's members.
        self._root = dict(patched) if isinstance(patched, dict) else patched
        self.obj: Object = patched

    def decode(self, empties: Empties) -> list[str]:
        """Brings `obj` into its kind, with its defaults, and returns the texts of its unknown fields. Raises StatusError 422."""
        specs, patched, current_spec = self._kind.known_specs, self.obj, self._current.get("spec")
        if specs is None or not current_spec or type(patched) is not dict or patched.get("spec") is not current_spec:
            return self._decode(patched, empties)
        text = _encode(current_spec)
        spec, rest_empties = specs.find(text), Empties()
        if spec is not None:
            with suppress(StatusError):
                if not self._decode({**patched, "spec": {}}, rest_empties):
                    empties |= rest_empties
                    self.obj["spec"] = spec
                    return []
        unknown = self._decode(patched, empties)
        if not unknown and not empties:
            specs.add(text, self.obj["spec"])
        return unknown

    def _decode(self, patched: Any, empties: Empties) -> list[str]:
        self.obj = _by_name(patched) if self._change.sorts_keys else {**patched} if type(patched) is dict else patched
        if not isinstance(self.obj, dict):  # the patch was a list, which replaces the document
            raise self.invalid(NO_OBJECT)
        without_version = self._set_type()
        try:
            unknown = self._kind.decode(self.obj, empties, from_map=self._change.makes_map)
            if without_version:
                unknown = without_version
            elif len(unknown) > 1:
                # Reported in the order of the document that upstream decodes.
                unknown = sorted(unknown) if self._change.makes_map else self._kind.decode(self._read_again())
        except ValueError as error:
            raise self.invalid(self._first_problem(error)) from None
        defaulted(self.obj, self._kind)
        return unknown

    def invalid(self, why: str) -> StatusError:
        return invalid_patch(self._change.shown(self._written()), why)

    def _written(self) -> Any:
        definition = {"$ref": "#/components/schemas/" + self._kind.definition_name}
        return self._change.written(self._current, self._root, definition, self._kind.definitions)

    def _set_type(self) -> list[str]:
        """Sets the object's type, and returns the texts of its unknown fields: all of them, if the patch has removed the version.
        Raises StatusError 422 for an object of another kind.
        """
        obj, kind, gvk = self.obj, self._kind, self._kind.gvk
        own = {"kind": gvk.kind, "apiVersion": gvk.api_version}
        if self._change.makes_map:
            try:
                unstructured.restore(obj, kind.definition_name, kind.definitions, field_order)
            except ValueError as error:
                raise self.invalid(str(error)) from None
            obj |= own
            raw_text.keep(obj, kind.raw_fields, b"")
            return []
        try:
            checked_type_meta(obj)
            if kind.raw_fields:
                raw_text.keep_stored(obj, kind.raw_fields, go_text(self._written()))
        except ValueError as error:
            raise self.invalid(type_meta_error(error)) from None
        unknown = [] if obj.get("apiVersion") else sorted(obj.keys() - {"kind", "apiVersion"})
        for name in unknown:
            del obj[name]
        # A version that isn't said is the internal one, of which the object is that the patch is decoded into.
        version = obj.get("apiVersion") or str(GroupVersion(gvk.group, INTERNAL))
        named = GroupVersionKind(*GroupVersion.parse(version), obj.get("kind") or gvk.kind)
        if named not in (gvk, GroupVersionKind(gvk.group, INTERNAL, gvk.kind)):
            raise self.invalid(not_registered(named))
        obj |= own
        return [f"unknown field {go_quote(name)}" for name in unknown]

    def _first_problem(self, error: ValueError) -> str:
        """Returns the error that Go meets first in the text of the document."""
        if not self._change.makes_map:
            try:
                self._kind.decode(self._read_again())
            except ValueError as first:
                return str(first)
        return str(error)

    def _read_again(self) -> Any:
        """Returns the document decoded again from its text, as upstream does."""
        return json.decode_as_written(go_text(self._written()))


def _by_name(value: Any) -> Any:
    """Returns a copy with the members of objects in the order of their names, since a merge patch's result goes through text and
    Go's maps. An object with repeated names (json.Repeated, no plain dict) stays as it is, for the decoder to report them.
    """
    if type(value) is dict:
        return {key: _by_name(value[key]) for key in sorted(value)}
    return [_by_name(item) for item in value] if type(value) is list else value
