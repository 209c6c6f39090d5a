"""Secrets: data in base64, typed by what keys it must have.

Upstream: pkg/registry/core/secret/strategy.go, pkg/apis/core/validation/validation.go (ValidateSecret), pkg/apis/core/v1/conversion.go.
"""

import base64
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.registry.core.data_keys import MAX_SIZE, immutable_errors, key_errors
from fakeapiserver.registry.core.key_pair import key_pair_problem
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_DATA: Final = Path("data")
_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_TLS: Final = "kubernetes.io/tls"
# Type -> keys that it must have.
_REQUIRED_KEYS: Final = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    _TLS: ("tls.crt", "tls.key"),
}
_JSON_TYPES: Final = ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson")


class SecretStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        """Moves stringData, which is write-only, into data."""
        if strings := obj.pop("stringData", None):
            added = {key: base64.b64encode(text.encode()).decode() for key, text in strings.items()}
            obj["data"] = {**(obj.get("data") or {}), **added}
        obj.setdefault("type", "Opaque")

    def validate(self, obj: Object) -> ErrorList:
        data: dict[str, str] = obj.get("data") or {}
        errors = key_errors(data, _DATA)
        if sum(len(base64.b64decode(text)) for text in data.values()) > MAX_SIZE:
            errors.append(field.too_long(_DATA, MAX_SIZE))
        return errors + _type_errors(obj, data)

    def validate_immutable(self, obj: Object, old: Object) -> ErrorList:
        errors: ErrorList = []
        if obj.get("type") != old.get("type"):
            errors.append(field.invalid("type", field.json_text(obj.get("type", "")), "field is immutable"))
        return errors + immutable_errors(obj, old, ("data",))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def warnings_on_create(self, obj: Object) -> list[str]:
        if obj.get("type") != _TLS:
            return []
        data = obj.get("data") or {}
        certificate, key = (base64.b64decode(data.get(name, "")) for name in _REQUIRED_KEYS[_TLS])
        problem = key_pair_problem(certificate, key)
        return [problem] if problem else []

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def _type_errors(obj: Object, data: dict[str, str]) -> ErrorList:
    kind = obj.get("type", "")
    if kind == "kubernetes.io/service-account-token":
        if not (metadata(obj).get("annotations") or {}).get(_ACCOUNT_NAME):
            return [field.required(Path("metadata").child("annotations").key(_ACCOUNT_NAME))]
        return []
    if kind == "kubernetes.io/basic-auth":
        return [] if {"username", "password"} & data.keys() else _required("username", "password")
    if kind == "kubernetes.io/ssh-auth":
        return [] if data.get("ssh-privatekey") else _required("ssh-privatekey")
    errors = _required(*(key for key in _REQUIRED_KEYS.get(kind, ()) if key not in data))
    if kind in _JSON_TYPES and not errors:
        errors += _json_errors(_REQUIRED_KEYS[kind][0], data)
    return errors


def _required(*keys: str) -> ErrorList:
    return [field.required(_DATA.key(key)) for key in keys]


def _json_errors(key: str, data: dict[str, str]) -> ErrorList:
    try:
        document = json.decode(base64.b64decode(data[key]))
    except ValueError as error:
        problem = str(error)
    else:
        problem = "" if document is None or isinstance(document, dict) else _mismatch(document)
    return [field.invalid(_DATA.key(key), "<secret contents redacted>", problem)] if problem else []


def _mismatch(value: object) -> str:
    kind = {str: "string", bool: "bool", list: "array"}.get(type(value), "number")
    return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
