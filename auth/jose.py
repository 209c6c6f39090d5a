"""Signed JSON in its compact form, read as go-jose reads it: a malformed token is unknown, a well-formed invalid one is refused.

Upstream: gopkg.in/go-jose/go-jose.v2 {jws.go,shared.go,jwt,json}. Signatures themselves are PyJWT's and cryptography's work.
"""

import base64
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.serializer.json import DecodeError, decode, encode
from fakeapiserver.auth.interfaces import RefusedError

BAD_SIGNATURE: Final = "go-jose/go-jose: error in cryptographic primitive"
_NOT_A_DATE: Final = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate"
_NOT_AN_AUDIENCE: Final = "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience"
_NOT_BASE64: Final = re.compile(rb"[^A-Za-z0-9_\r\n-]")
_SPACE: Final = re.compile(r"\s+")
_INT64: Final = 1 << 63
# Members of a JSON web key: texts, and bytes in base64.
_TEXT_FIELDS: Final = ("use", "kty", "kid", "crv", "alg")
_BYTES_FIELDS: Final = ("k", "x", "y", "n", "e", "d", "p", "q", "dp", "dq", "qi", "x5t", "x5t#S256")
# Digests of certificates, as bytes or in hexadecimal.
_DIGESTS: Final = {
    "x5t": re.compile(rb"[0-9A-Fa-f]{40}|.{20}", re.DOTALL),
    "x5t#S256": re.compile(rb"[0-9A-Fa-f]{64}|.{32}", re.DOTALL),
}


class MalformedError(ValueError):
    """The text is no JWS in compact form; the message is go-jose's."""


class JSONObject(dict[str, Any]):
    """An object that remembers the first key it has twice."""

    duplicate: str | None = None


class OutOfRange(float):
    """A number that no float64 holds, as it was written."""

    text = ""


class Signed(Struct, frozen=True):
    """`payload` is the claims when they are an object. `signed` is what `signature` is of."""

    header: Mapping[str, Any]
    payload: JSONObject | None
    signed: bytes
    signature: bytes

    @property
    def kid(self) -> str:
        return self.header.get("kid") or ""

    def check_header(self) -> str:
        """Returns the algorithm. Raises RefusedError if it is unsupported, or a critical header is unknown."""
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


def untrusted_issuer(token: str) -> str | None:
    """Returns a token's issuer, unverified, or None for an invalid token.

    As in Go's JSON, case and repetition of names don't matter.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = loads(_bytes(parts[1]))
    except ValueError:
        return None
    if claims is None:
        return ""
    if not isinstance(claims, JSONObject):
        return None
    issuer = folded(claims).get("iss") or ""
    return issuer if isinstance(issuer, str) else None


def folded(claims: Mapping[str, Any]) -> dict[str, Any]:
    """Claims by their names in lower case, as Go's structs take them; what is null leaves the one before as it is."""
    members: dict[str, Any] = {}
    for key, value in claims.items():
        name = key.replace("ſ", "s").lower()
        if value is not None or name not in members:
            members[name] = value
    return members


def parse(token: str) -> Signed:
    """MalformedError."""
    parts = _SPACE.sub("", token).split(".")
    if len(parts) != 3:
        raise MalformedError("go-jose/go-jose: compact JWS format must have three parts")
    head, payload, signature = map(_bytes, parts)
    header = _header(head) if head else JSONObject()
    try:
        claims = loads(payload)
    except ValueError:
        claims = None
    members = claims if isinstance(claims, JSONObject) else None
    return Signed(header, members, f"{parts[0]}.{parts[1]}".encode(), signature)


def _header(data: bytes) -> JSONObject:
    """MalformedError."""
    try:
        header = loads(data)
    except ValueError:
        raise MalformedError(_syntax_error(data)) from None
    if header is None:
        return JSONObject()
    if not isinstance(header, JSONObject):
        raise MalformedError(f"json: cannot unmarshal {json_kind(header)} into Go value of type jose.rawHeader")
    if header.duplicate is not None:
        raise MalformedError(f"json: duplicate key '{header.duplicate}' in object")
    for name, called in (("alg", "algorithm"), ("kid", "key ID"), ("nonce", "nonce")):
        value = header.get(name)
        if not isinstance(value, str | None):
            why = f"json: cannot unmarshal {json_kind(value)} into Go value of type string"
            raise MalformedError(f"failed to unmarshal {called}: {why}: {_shown(value)}")
    try:
        _check_key(header.get("jwk"))
    except MalformedError:
        raise
    except ValueError as error:
        raise MalformedError(f"failed to unmarshal JWK: {error}: {_shown(header['jwk'])}") from None
    try:
        _check_chain(header.get("x5c"))
    except ValueError as error:
        raise MalformedError(f"failed to unmarshal x5c header: {error}: {_shown(header['x5c'])}") from None
    return header


def _check_key(jwk: Any) -> None:
    """A key that a token brings along is never used, but it must be a public one. ValueError."""
    if jwk is None:
        return
    if not isinstance(jwk, dict):
        raise ValueError(f"json: cannot unmarshal {json_kind(jwk)} into Go value of type jose.rawJSONWebKey")
    kind, curve = jwk.get("kty") or "", jwk.get("crv") or ""
    if kind == "RSA":
        if not jwk.get("n") or not jwk.get("e"):
            raise ValueError("go-jose/go-jose: invalid RSA key, missing n/e values")
    elif kind == "EC":
        if curve not in ("P-256", "P-384", "P-521"):
            raise ValueError(f"go-jose/go-jose: unsupported elliptic curve '{curve}'")
        _check_point(jwk, curve)
    elif kind == "OKP":
        if curve != "Ed25519" or not jwk.get("x"):
            raise ValueError(f"go-jose/go-jose: unknown curve {curve}'")
    elif kind != "oct":
        raise ValueError(f"go-jose/go-jose: unknown json web key type '{kind}'")
    if kind == "oct" or jwk.get("d") is not None:
        raise MalformedError("go-jose/go-jose: invalid embedded jwk, must be public key")


def check_published_key(jwk: Any) -> None:
    """Raises ValueError for a key in an issuer's set that go-jose can't read: then it takes no key of the set."""
    if not isinstance(jwk, dict | None):
        raise ValueError(f"json: cannot unmarshal {json_kind(jwk)} into Go value of type jose.rawJSONWebKey")
    jwk = jwk or {}
    for name in (*_TEXT_FIELDS, *_BYTES_FIELDS):
        value = jwk.get(name)
        if not isinstance(value, str | None):
            raise ValueError(f"json: cannot unmarshal {json_kind(value)} into Go struct field rawJSONWebKey.{name}")
        if value and name in _BYTES_FIELDS:
            data = _bytes(value)
            if name in _DIGESTS and not _DIGESTS[name].fullmatch(data):
                raise ValueError(f"go-jose/go-jose: invalid JWK, {name} header has invalid encoding")
    if not isinstance(jwk.get("x5u"), dict | None):  # to Go it is a url.URL, which no text is
        raise ValueError(f"json: cannot unmarshal {json_kind(jwk['x5u'])} into Go struct field rawJSONWebKey.x5u")
    _check_chain(jwk.get("x5c"))
    kind, required = jwk.get("kty") or "", ["n", "e"]
    if kind == "EC":
        curve = jwk.get("crv") or ""
        if curve not in ("P-256", "P-384", "P-521"):
            raise ValueError(f"go-jose/go-jose: unsupported elliptic curve '{curve}'")
        _check_point(jwk, curve)
    elif kind == "RSA":
        required += ["p", "q"] if jwk.get("d") is not None else []
        if any(jwk.get(name) is None for name in required):
            raise ValueError(f"go-jose/go-jose: invalid RSA key, missing {'/'.join(required)} values")
    elif kind == "OKP":
        if jwk.get("crv") != "Ed25519" or jwk.get("x") is None:
            raise ValueError(f"go-jose/go-jose: unknown curve {jwk.get('crv') or ''}'")
    elif kind == "oct":
        if jwk.get("k") is None:
            raise ValueError("go-jose/go-jose: invalid OCT (symmetric) key, missing k value")
    else:
        raise ValueError(f"go-jose/go-jose: unknown json web key type '{kind}'")


def _check_point(jwk: Mapping[str, Any], curve: str) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec

    if not jwk.get("x") or not jwk.get("y"):
        raise ValueError("go-jose/go-jose: invalid EC key, missing x/y values")
    x, y = _bytes(str(jwk["x"])), _bytes(str(jwk["y"]))
    curves = {"P-256": (32, ec.SECP256R1), "P-384": (48, ec.SECP384R1), "P-521": (66, ec.SECP521R1)}
    size, kind = curves[curve]
    for name, value in (("x", x), ("y", y)):
        if len(value) != size:
            raise ValueError(f"go-jose/go-jose: invalid EC public key, wrong length for {name}")
    try:
        ec.EllipticCurvePublicNumbers(int.from_bytes(x), int.from_bytes(y), kind()).public_key()
    except ValueError:
        raise ValueError("go-jose/go-jose: invalid EC key, X/Y are not on declared curve") from None


def _check_chain(chain: Any) -> None:
    """A chain that a token brings along is never used, but it must be one. ValueError."""
    if chain is None:
        return
    if not isinstance(chain, list):
        raise ValueError(f"json: cannot unmarshal {json_kind(chain)} into Go value of type []string")
    from cryptography import x509

    for item in chain:
        if not isinstance(item, str):
            raise ValueError(f"json: cannot unmarshal {json_kind(item)} into Go value of type string")
        try:
            x509.load_der_x509_certificate(base64.b64decode(item, validate=True))
        except ValueError:
            raise ValueError("x509: malformed certificate") from None


def _shown(value: Any) -> str:
    return go_quote(encode(value).decode())


def _syntax_error(data: bytes) -> str:
    """Returns Go's error for JSON that Python's decoder refuses."""
    try:
        decode(data)
    except DecodeError as error:
        return str(error)
    return "unexpected end of JSON input"


def loads(data: bytes) -> Any:
    """JSON as Go reads it: bytes that aren't UTF-8, and halves of surrogate pairs, become U+FFFD. ValueError."""
    try:
        value = json.loads(
            data.decode("utf-8", "replace"), object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_number
        )
        return _whole(value) if b"\\u" in data else value
    except RecursionError:
        raise ValueError("exceeded max depth") from None


def _object(pairs: list[tuple[str, Any]]) -> JSONObject:
    obj = JSONObject(pairs)
    if len(obj) < len(pairs):
        seen: set[str] = set()
        obj.duplicate = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return obj


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _number(text: str) -> float:
    value = float(text)
    if math.isfinite(value):
        return value
    beyond = OutOfRange(value)
    beyond.text = text
    return beyond


def _whole(value: Any) -> Any:
    """Without halves of surrogate pairs."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, JSONObject):
        obj = JSONObject({_whole(key): _whole(item) for key, item in value.items()})
        obj.duplicate = value.duplicate
        return obj
    return value


def _bytes(segment: str) -> bytes:
    """Base64 as tokens have it. MalformedError in the words of Go's decoder."""
    text = segment.encode("utf-8", "surrogateescape")
    if bad := _NOT_BASE64.search(text):
        raise MalformedError(f"illegal base64 data at input byte {bad.start()}")
    digits = text.replace(b"\r", b"").replace(b"\n", b"")
    if len(digits) % 4 == 1:
        raise MalformedError(f"illegal base64 data at input byte {len(text) - 1}")
    return base64.urlsafe_b64decode(digits + b"=" * (-len(digits) % 4))


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
    """Returns a value's type as Go's errors name it."""
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
    """Returns a token's audiences; empty without any. Raises RefusedError."""
    if "aud" not in claims:
        return []
    audiences = claims["aud"]
    if isinstance(audiences, str):
        return [audiences]
    if not isinstance(audiences, list) or not all(isinstance(item, str) for item in audiences):
        raise RefusedError(_NOT_AN_AUDIENCE)
    return audiences
