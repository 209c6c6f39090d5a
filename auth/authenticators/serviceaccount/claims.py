"""The claims of TokenRequest's tokens: an account, and the pod, secret or node that they are bound to.

Upstream: pkg/serviceaccount/{claims.go,util.go}.
"""

from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.meta import FrozenObject
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.auth import jose
from fakeapiserver.auth.authenticators.serviceaccount.getter import find, service_account
from fakeapiserver.auth.interfaces import RefusedError, UserInfo
from fakeapiserver.clock import Clock

_LEEWAY: Final = 60.0  # seconds
_EXTRA: Final = "authentication.kubernetes.io/"
_INVALIDATED: Final = "service account token has been invalidated"
_UID_TEXTS: Final = {
    "serviceaccounts": ("claim", "service account"),
    "secrets": ("service account secret ref claim", "secret"),
    "pods": ("service account pod ref claim", "pod"),
    "nodes": ("service account node ref claim", "node"),
}
# claim -> the resource it names, beside the account itself
_BOUND: Final = {"secret": "secrets", "pod": "pods", "node": "nodes"}


class BoundValidator(Struct, frozen=True):
    """The token is good as long as the account and what it is bound to exist, with the same uids."""

    objects: ObjectReader
    clock: Clock

    def check(self, claims: jose.JSONObject) -> None:
        private = claims.get("kubernetes.io")
        jose.check_kind(private, "object", "serviceaccount.kubernetes")
        if private is None:
            return
        jose.check_unique(private)
        jose.numeric_date(private.get("warnafter"))
        for name, value in private.items():
            if name == "namespace":
                jose.check_kind(value, "string")
            elif name == "serviceaccount" or name in _BOUND:
                jose.check_kind(value, "object", "serviceaccount.ref")
                if value is not None:
                    jose.check_unique(value)
                    jose.check_kind(value.get("name"), "string")
                    jose.check_kind(value.get("uid"), "string")

    async def validate(self, token: str, claims: jose.JSONObject) -> tuple[UserInfo, tuple[str, ...]]:
        self._check_times(claims)
        return self._user(claims), ()

    def _check_times(self, claims: jose.JSONObject) -> None:
        now = self.clock.now()
        times = {name: jose.numeric_date(claims.get(name)) for name in ("exp", "nbf", "iat")}
        if times["nbf"] is not None and now + _LEEWAY < times["nbf"]:
            raise RefusedError("service account token is not valid yet")
        if times["exp"] is not None and now - _LEEWAY > times["exp"]:
            raise RefusedError("service account token has expired")
        if times["iat"] is not None and now + _LEEWAY < times["iat"]:
            raise RefusedError("service account token is issued in the future")

    def _user(self, claims: jose.JSONObject) -> UserInfo:
        """The account is that of the private claims; `sub` only repeats it."""
        private = claims.get("kubernetes.io") or {}
        namespace, (name, uid) = private.get("namespace") or "", _reference(private.get("serviceaccount"))
        self._check_object("serviceaccounts", namespace, name, uid, service_account(self.objects, namespace, name))
        extra: dict[str, tuple[str, ...]] = {}
        bound = {claim: _reference(private[claim]) for claim in _BOUND if private.get(claim) is not None}
        for claim, (bound_name, bound_uid) in bound.items():
            if claim != "node" or "pod" not in bound:  # a pod's token is not bound to its node
                within = "" if claim == "node" else namespace
                bound_object = find(self.objects, _BOUND[claim], within, bound_name)
                self._check_object(_BOUND[claim], within, bound_name, bound_uid, bound_object)
            if claim != "secret":
                named = {f"{_EXTRA}{claim}-name": (bound_name,), f"{_EXTRA}{claim}-uid": (bound_uid,)}
                extra |= {key: value for key, value in named.items() if value[0]}
        if claims.get("jti"):
            extra[f"{_EXTRA}credential-id"] = (f"JTI={claims['jti']}",)
        return account_user(namespace, name, uid, extra)

    def _check_object(self, resource: str, namespace: str, name: str, uid: str, obj: FrozenObject | None) -> None:
        if obj is None:
            raise RefusedError(_INVALIDATED)
        meta = obj["metadata"]
        if meta.get("uid") != uid:
            claim, what = _UID_TEXTS[resource]
            raise RefusedError(f"{what} UID ({meta.get('uid', '')}) does not match {claim} ({uid})")
        deleted = seconds_of(meta.get("deletionTimestamp") or "")
        if deleted is not None and deleted < self.clock.now() - _LEEWAY:
            is_account = resource == "serviceaccounts"
            raise RefusedError(f"service account {namespace}/{name} has been deleted" if is_account else _INVALIDATED)


def account_user(namespace: str, name: str, uid: str, extra: dict[str, tuple[str, ...]]) -> UserInfo:
    """Returns a service account's user (upstream: serviceaccount.UserInfo)."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return UserInfo(f"system:serviceaccount:{namespace}:{name}", uid, groups, extra)


def _reference(value: Any) -> tuple[str, str]:
    """(name, uid) of a claim that names an object; empty where it doesn't."""
    reference = value if isinstance(value, dict) else {}
    return reference.get("name") or "", reference.get("uid") or ""
