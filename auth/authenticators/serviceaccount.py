"""Service account tokens: a signed statement which account, and which pod, secret or node it is bound to.

Upstream: pkg/serviceaccount/{jwt.go,claims.go,util.go}; go-jose's jwt for the times.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fakeapiserver.apimachinery.errors import new_unauthorized
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.auth.service_account_keys import ServiceAccountKeys
from fakeapiserver.clock import Clock

Object = Mapping[str, Any]
_LEEWAY: Final = 60.0  # seconds
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-]+")
_EXTRA: Final = "authentication.kubernetes.io/"
_BAD_SIGNATURE: Final = "go-jose/go-jose: error in cryptographic primitive"
_INVALIDATED: Final = "service account token has been invalidated"
_UID_TEXTS: Final = {
    "serviceaccounts": ("claim", "service account"),
    "secrets": ("service account secret ref claim", "secret"),
    "pods": ("service account pod ref claim", "pod"),
    "nodes": ("service account node ref claim", "node"),
}
# claim -> the resource it names, beside the account itself
_BOUND: Final = {"secret": "secrets", "pod": "pods", "node": "nodes"}


class Objects(Protocol):
    """Where accounts and what tokens are bound to are looked up."""

    def get(self, resource: str, namespace: str, name: str) -> Object | None: ...


class RefusedError(ValueError):
    """The token is of this issuer, but not good; the text is upstream's reason."""


@dataclass(frozen=True, slots=True)
class ServiceAccountTokens:
    """Tokens of `issuers` for one of `audiences`, as long as what they are bound to exists."""

    keys: ServiceAccountKeys
    issuers: Sequence[str]
    audiences: Sequence[str]
    objects: Objects
    clock: Clock

    async def authenticate_token(self, token: str, audiences: Sequence[str] = ()) -> UserInfo | None:
        claims = unverified_claims(token)
        if claims is None or claims.get("iss") not in self.issuers:
            return None
        try:
            self._check_signature(token)
            self._check_audience(claims, audiences or self.audiences)
            self._check_times(claims)
            return self._user(claims)
        except RefusedError as error:
            raise new_unauthorized() from error

    def _check_signature(self, token: str) -> None:
        signed, _, signature = token.rpartition(".")
        header = _decoded(signed.partition(".")[0])
        # A header that must be understood isn't; b64 would change what is signed.
        if not isinstance(header, dict) or "crit" in header or header.get("b64") is False:
            raise RefusedError(_BAD_SIGNATURE)
        algorithm, kid = header.get("alg"), header.get("kid") or ""
        if not isinstance(algorithm, str) or not isinstance(kid, str):
            raise RefusedError(_BAD_SIGNATURE)
        verified = self.keys.verify(algorithm, kid, signed.encode(), _bytes(signature))
        if not verified:
            raise RefusedError(_BAD_SIGNATURE if verified is False else "invalid signature, no keys found")

    def _check_audience(self, claims: Object, wanted: Sequence[str]) -> None:
        found = audiences_of(claims) or list(self.audiences)
        if not set(wanted).intersection(found):
            raise RefusedError(
                f"token audiences {_go_list(found)} is invalid for the target audiences {_go_list(wanted)}"
            )

    def _check_times(self, claims: Object) -> None:
        now = self.clock.now()
        times = {name: _time(claims.get(name)) for name in ("exp", "nbf", "iat")}
        if times["nbf"] is not None and now + _LEEWAY < times["nbf"]:
            raise RefusedError("service account token is not valid yet")
        if times["exp"] is not None and now - _LEEWAY > times["exp"]:
            raise RefusedError("service account token has expired")
        if times["iat"] is not None and now + _LEEWAY < times["iat"]:
            raise RefusedError("service account token is issued in the future")

    def _user(self, claims: Object) -> UserInfo:
        """The account is that of the private claims; `sub` only repeats it."""
        private = claims.get("kubernetes.io")
        private = private if isinstance(private, dict) else {}
        namespace, (name, uid) = str(private.get("namespace", "")), _reference(private.get("serviceaccount"))
        self._check_object("serviceaccounts", namespace, name, uid)
        extra: dict[str, tuple[str, ...]] = {}
        bound = {claim: _reference(private[claim]) for claim in _BOUND if private.get(claim) is not None}
        for claim, reference in bound.items():
            if claim != "node" or "pod" not in bound:  # a pod's token only tells where the pod was
                self._check_object(_BOUND[claim], "" if claim == "node" else namespace, *reference)
            if claim != "secret":
                named = zip(("name", "uid"), reference, strict=True)
                extra |= {f"{_EXTRA}{claim}-{what}": (value,) for what, value in named if value}
        if claims.get("jti"):
            extra[f"{_EXTRA}credential-id"] = (f"JTI={claims['jti']}",)
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return UserInfo(f"system:serviceaccount:{namespace}:{name}", uid, groups, extra)

    def _check_object(self, resource: str, namespace: str, name: str, uid: str) -> None:
        found = self.objects.get(resource, namespace, name) if name else None
        is_account = resource == "serviceaccounts"
        if found is None:
            raise RefusedError(f'serviceaccounts "{name}" not found' if is_account else _INVALIDATED)
        meta = found["metadata"]
        if meta.get("uid") != uid:
            claim, what = _UID_TEXTS[resource]
            raise RefusedError(f"{what} UID ({meta.get('uid', '')}) does not match {claim} ({uid})")
        deleted = seconds_of(meta.get("deletionTimestamp") or "")
        if deleted is not None and deleted < self.clock.now() - _LEEWAY:
            raise RefusedError(f"service account {namespace}/{name} has been deleted" if is_account else _INVALIDATED)


def audiences_of(claims: Object) -> list[str]:
    """Whom a token says it is for; empty where it doesn't say."""
    found = claims.get("aud") or []
    return [found] if isinstance(found, str) else [str(item) for item in found] if isinstance(found, list) else [""]


def _time(value: Any) -> float | None:
    """Seconds since the Unix epoch; None where a claim is absent."""
    if value is None:
        return None
    if (
        not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1 << 63
    ):  # NaN is less than nothing
        raise RefusedError(_BAD_SIGNATURE)
    return value


def _go_list(texts: Sequence[str]) -> str:
    return "[" + " ".join(map(go_quote, texts)) + "]"


def _reference(value: Any) -> tuple[str, str]:
    """(name, uid) of a claim that names an object; empty where it doesn't."""
    found = value if isinstance(value, dict) else {}
    return str(found.get("name", "")), str(found.get("uid", ""))


def unverified_claims(token: str) -> Object | None:
    """None for what is no JWT in its compact form."""
    parts = token.split(".")
    if len(parts) != 3 or not all(_SEGMENT.fullmatch(part) for part in parts):
        return None
    claims = _decoded(parts[1])
    return claims if isinstance(claims, dict) else None


def _decoded(segment: str) -> Any:
    try:
        return json.loads(_bytes(segment))
    except (ValueError, RecursionError):
        return None


def _bytes(segment: str) -> bytes:
    """Of base64url without padding; empty for what isn't."""
    try:
        return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except ValueError:
        return b""
