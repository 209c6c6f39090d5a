"""Versioned configuration files of components, such as AuthenticationConfiguration, as Go's typed decoders read them.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer (EnableStrict), sigs.k8s.io/json. No API server publishes these types, so they
are written down where they are used, in Go's notation:

    {"AdmissionConfiguration": {"plugins": "[]AdmissionPluginConfiguration"},
     "AdmissionPluginConfiguration": {"name": "string", "path": "string", "configuration": "Raw"}}

Scalars are `string`, `bool`, `int32`, `int64`, `Duration` and `Bytes` (base64); `map[string]T` is an object of any keys, `Raw` is
anything; a name that stands for text is
its own type in messages (`"Level": "string"`). Structs are called by the file's version, others by their package (`v1.Toleration`).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.decoders import DecodeError, State, decode_bytes
from fakeapiserver.apimachinery.serializer import json, type_meta, yaml

Types = Mapping[str, Mapping[str, str] | str]

_SCALARS: Final[Mapping[str, tuple[type, Any]]] = {"string": (str, ""), "bool": (bool, False)}
_MAP: Final = "map[string]"
_LIMITS: Final = {"int32": 1 << 31, "int64": 1 << 63}


def not_registered(version: str, kind: str) -> str:
    """Returns the error of upstream's schemes about an unknown kind."""
    return (
        f'no kind {go_quote(kind)} is registered for version {go_quote(version)} in scheme "pkg/runtime/scheme.go:111"'
    )


def check_named(document: Any) -> None:
    """ValueError for what has no kind or no apiVersion."""
    if not isinstance(document, dict):
        kinds = {list: "array", str: "string", bool: "bool"}
        fields = 'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\""'
        problem = f"cannot unmarshal {kinds.get(type(document), 'number')} into Go value of type struct {{ {fields} }}"
        raise ValueError(f"couldn't get version/kind; json parse error: json: {problem}")
    for name in ("kind", "apiVersion"):
        if not document.get(name):
            shown = json_text(document)
            raise ValueError(f"Object '{'Kind' if name == 'kind' else name}' is missing in '{shown}'")


def json_text(document: Any) -> str:
    return msgspec.json.encode(document, order="sorted").decode()


class ConfigKind(Struct, frozen=True):
    """A kind of configuration, which each of `versions` (apiVersions) has with the same `types`."""

    name: str
    versions: tuple[str, ...]
    types: Types

    def decode(self, data: bytes) -> Object:
        """Decodes the document in a file: nulls are left out, durations are text.

        Raises ValueError in upstream's words for another kind, unknown fields and repeated fields.
        """
        document, version, kind, is_json = type_meta.read(data)
        for name, value in (("Kind", kind), ("apiVersion", version)):
            if not value:
                raise ValueError(f"Object '{name}' is missing in '{data.decode('utf-8', 'replace')}'")
        if not is_json:
            repeated = yaml.duplicate_keys(data)
            obj, unknown = self._read(document, version, kind)
            complaints = [*repeated, *unknown]
        else:
            _, in_order = json.with_duplicates(data)
            obj, unknown = self._read(document, version, kind)
            complaints = in_order(unknown)
        if complaints:
            raise ValueError(f"strict decoding error: {', '.join(complaints)}")
        return obj

    def read(self, document: Object, *, is_strict: bool = True) -> Object:
        """The same of a document that stands in another one, which may be anything."""
        check_named(document)
        obj, unknown = self._read(document, document.get("apiVersion") or "", document.get("kind") or "")
        if unknown and is_strict:
            raise ValueError(f"strict decoding error: {', '.join(unknown)}")
        return obj

    def _read(self, document: Object, version: str, kind: str) -> tuple[Object, list[str]]:
        """The document, and texts such as `unknown field "plugins[0].nome"`."""
        if kind != self.name or version not in self.versions:
            raise ValueError(not_registered(version, kind))
        state = State()
        own = {"kind": "string", "apiVersion": "string", **self._struct(self.name)}
        reader = _Reader({**self.types, self.name: own}, version.rpartition("/")[2])
        obj: Object = reader.value(document, self.name, state)
        if state.error:
            raise DecodeError(state.error)
        return obj, list(state.unknown)

    def _struct(self, name: str) -> Mapping[str, str]:
        fields = self.types[name]
        assert not isinstance(fields, str)
        return fields


class _Reader(Struct, frozen=True):
    """Reads values of these types.

    Mismatches are recorded in `state`; an invalid duration is a DecodeError at once, as in Go.
    """

    types: Types
    version: str

    def value(self, value: Any, go_type: str, state: State) -> Any:
        """The value without nulls; a null itself is Go's zero."""
        if go_type == "Raw":
            return value
        if go_type.startswith("[]"):
            return self._list(value, go_type, state)
        if go_type.startswith(_MAP):
            return self._map(value, go_type, state)
        fields = self.types.get(go_type, go_type)
        if not isinstance(fields, str):
            return self._struct(value, go_type, fields, state)
        called = self._called(go_type)
        if fields == "Bytes":
            return decode_bytes(value, state)
        if fields in _PARSED:
            return _parsed(value, _PARSED[fields], state)
        if fields in _LIMITS:
            fits = type(value) is int and -_LIMITS[fields] <= value < _LIMITS[fields]
            return value if fits else _mismatch(value, called, 0, state, exact=True)
        kind, zero = _SCALARS[fields]
        return value if type(value) is kind else _mismatch(value, called, zero, state)

    def _struct(self, value: Any, go_type: str, fields: Mapping[str, str], state: State) -> Object:
        out: Object = {}
        if type(value) is not dict:
            _mismatch(value, self._called(go_type), None, state)
            return out
        outer = state.struct
        for key, item in value.items():
            if key not in fields:
                state.unknown_field(key)
            elif item is not None or fields[key] == "Duration":  # a null duration is no duration
                state.struct = go_type.rpartition(".")[2]
                state.fields.append(key)
                state.path.append(f".{key}" if state.path else key)
                out[key] = self.value(item, fields[key], state)
                state.path.pop()
                state.fields.pop()
        state.struct = outer
        return out

    def _list(self, value: Any, go_type: str, state: State) -> list[Any]:
        if type(value) is not list:
            _mismatch(value, self._called(go_type), None, state)
            return []
        out = []
        for i, item in enumerate(value):
            state.path.append(f"[{i}]")
            out.append(self.value(item, go_type[2:], state))
            state.path.pop()
        return out

    def _map(self, value: Any, go_type: str, state: State) -> Object:
        if type(value) is not dict:
            _mismatch(value, self._called(go_type), None, state)
            return {}
        return {key: self.value(item, go_type.removeprefix(_MAP), state) for key, item in value.items()}

    def _called(self, go_type: str) -> str:
        """Returns the type's name in messages."""
        if go_type.startswith("[]"):
            return "[]" + self._called(go_type[2:])
        if go_type.startswith(_MAP):
            return _MAP + self._called(go_type.removeprefix(_MAP))
        return f"{self.version}.{go_type}" if go_type in self.types and "." not in go_type else go_type


def _mismatch(value: Any, go_type: str, zero: Any, state: State, *, exact: bool = False) -> Any:
    if value is not None:
        state.save(value, go_type, exact=exact)
    return zero


def _parsed(value: Any, parse: Callable[[str], object], state: State) -> str:
    """A text that must be readable."""
    text = "" if value is None else value
    if type(text) is not str:
        raise DecodeError(state.mismatch(value, "string"))
    try:
        parse(text)
    except ValueError as error:
        raise DecodeError(str(error)) from None
    return text


_PARSED: Final[Mapping[str, Callable[[str], object]]] = {"Duration": parse_duration}
