"""Signed JSON in its compact form, read as go-jose reads it: what is malformed is nobody's token, what is well-formed and
wrong is refused.

Upstream: gopkg.in/go-jose/go-jose.v2 {jws.go,shared.go,jwt,json}. Signatures themselves are PyJWT's and cryptography's work.
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakeapiserver.auth.interfaces import RefusedError

BAD_SIGNATURE: Final = "go-jose/go-jose: error in cryptographic primitive"
_NOT_A_DATE: Final = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate"
_NOT_AN_AUDIENCE: Final = "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience"
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-]*")
_SPACE: Final = re.compile(r"\s+")
_PUBLIC_KEYS: Final = frozenset({"RSA", "EC", "OKP"})
_INT64: Final = 1 << 63


class JSONObject(dict[str, Any]):
    """An object that remembers the first key it has twice."""

    duplicate: str | None = None


@dataclass(frozen=True, slots=True)
class Signed:
    """`payload` is the claims when they are an object. `signed` is what `signature` is of."""

    header: Mapping[str, Any]
    payload: JSONObject | None
    signed: bytes
    signature: bytes

    @property
    def kid(self) -> str:
        return self.header.get("kid") or ""

    @property
    def issuer(self) -> str | None:
        """Whoever the token says has issued it, unverified; None where it doesn't say. Keys match in any case here."""
        found: Any = None
        for key, value in (self.payload or {}).items():
            if key.lower() == "iss" and value is not None:
                found = value
        return found if isinstance(found, str) else None

    def check_header(self) -> str:
        """The algorithm. RefusedError when there is none that can be checked, or a header that must be understood isn't."""
        critical = self.header.get("crit")
        if critical is not None:
            if not isinstance(critical, list):
                raise RefusedError(f"json: cannot unmarshal {json_kind(critical)} into Go value of type []string")
            if any(name != "b64" for name in critical):
                raise RefusedError(BAD_SIGNATURE)
        algorithm = self.header.get("alg")
        # b64 would change what is signed
        if not algorithm or self.header.get("b64") is False:
            raise RefusedError(BAD_SIGNATURE)
        return str(algorithm)


def parse(token: str) -> Signed | None:
    """None for what is no JWS in its compact form."""
    parts = _SPACE.sub("", token).split(".")
    if len(parts) != 3 or not all(map(_SEGMENT.fullmatch, parts)):
        return None
    try:
        head, payload, signature = map(_bytes, parts)
        header = loads(head) if head else JSONObject()
    except ValueError:
        return None
    header = JSONObject() if header is None else header
    if not isinstance(header, JSONObject) or not _well_formed(header):
        return None
    try:
        claims = loads(payload)
    except ValueError:
        claims = None
    found = claims if isinstance(claims, JSONObject) else None
    return Signed(header, found, f"{parts[0]}.{parts[1]}".encode(), signature)


def _well_formed(header: JSONObject) -> bool:
    if header.duplicate is not None:
        return False
    if not all(isinstance(header.get(name), str | None) for name in ("alg", "kid", "nonce")):
        return False
    key, chain = header.get("jwk"), header.get("x5c")
    return (key is None or (isinstance(key, dict) and key.get("kty") in _PUBLIC_KEYS)) and not chain


def loads(data: bytes) -> Any:
    """JSON as Go reads it: bytes that aren't UTF-8 become U+FFFD. ValueError."""
    try:
        return json.loads(data.decode("utf-8", "replace"), object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("exceeded max depth") from None


def _object(pairs: list[tuple[str, Any]]) -> JSONObject:
    found = JSONObject(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        found.duplicate = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return found


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _bytes(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


# ------------------------------------------------------------------- claims


def check_claims(claims: JSONObject) -> None:
    """RefusedError for the first registered claim of a wrong type, in the order of the document; what go-jose decodes itself
    goes before what Go's JSON does."""
    check_unique(claims)
    for name, value in claims.items():
        if name == "aud":
            audiences_of(claims)
        elif name in ("exp", "nbf", "iat"):
            numeric_date(value)
    for name, value in claims.items():
        if name in ("iss", "sub", "jti"):
            check_kind(value, "string")


def check_unique(claims: JSONObject) -> None:
    if claims.duplicate is not None:
        raise RefusedError(f"json: duplicate key '{claims.duplicate}' in object")


def check_kind(value: Any, kind: str, go_type: str = "") -> None:
    """RefusedError unless the value is of this kind of JSON, or null."""
    if value is not None and json_kind(value) != kind:
        raise RefusedError(f"json: cannot unmarshal {json_kind(value)} into Go value of type {go_type or kind}")


def json_kind(value: Any) -> str:
    """As Go's errors call it."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "number"


def numeric_date(value: Any) -> int | None:
    """Seconds since the Unix epoch; None where there is no date. What int64 can't hold is its lowest number, as Go converts it.
    RefusedError."""
    if value is None:
        return None
    if json_kind(value) != "number" or value in (float("inf"), -float("inf")):
        raise RefusedError(_NOT_A_DATE)
    return int(value) if abs(value) < _INT64 else -_INT64


def audiences_of(claims: Mapping[str, Any]) -> list[str]:
    """Whom a token says it is for; empty where it doesn't say. RefusedError."""
    if "aud" not in claims:
        return []
    found = claims["aud"]
    if isinstance(found, str):
        return [found]
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise RefusedError(_NOT_AN_AUDIENCE)
    return found
