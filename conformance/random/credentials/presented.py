"""The credentials of a request, signed tokens among them, and the users who may impersonate others."""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jwt.algorithms import get_default_algorithms

from conformance.players import credentials

ADMIN: Final = "reference-admin"
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@dataclass
class Presented:
    """The credentials of a request. `{…}` in a token is replaced by a value that differs between the servers."""

    token: "Token | str | None" = None
    headers: list[str] = field(default_factory=list)
    certificate: Path | None = None
    path: str = REVIEWS
    method: str = "POST"
    audiences: Sequence[str] = ()


@dataclass
class Token:
    header: str
    claims: str
    key: str
    algorithm: str
    spoil: Callable[[list[str]], str] = ".".join

    def signed(self, folder: Path, uids: Mapping[str, str]) -> str:
        claims = self.claims
        for name, uid in uids.items():
            claims = claims.replace("{" + name + "}", uid)
        parts = [
            segment(self.header.encode("utf-8", "surrogatepass")),
            segment(claims.encode("utf-8", "surrogatepass")),
        ]
        text = ".".join(parts).encode()
        if self.algorithm == "HS256":
            secret = (folder / f"{self.key}.pub").read_bytes()
            import hashlib
            import hmac

            signature = hmac.new(secret, text, hashlib.sha256).digest()
        elif self.algorithm == "none":
            signature = b""
        else:
            key = credentials.key_of(folder, self.key)
            signature = get_default_algorithms()[self.algorithm].sign(text, key)
        return self.spoil([*parts, segment(signature)])


def segment(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _rule(verbs: Sequence[str], resources: Sequence[str], group: str = "", names: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "resources": list(resources),
        "verbs": list(verbs),
        **({"resourceNames": list(names)} if names else {}),
    }


_AUTHENTICATION: Final = "authentication.k8s.io"
# Users with certificates of their own, who may impersonate a part of the others.
ROLES: Final = {
    "users": [_rule(["impersonate"], ["users"])],
    "jane": [_rule(["impersonate"], ["users"], names=["jane"]), _rule(["impersonate"], ["groups"], names=["dev"])],
    "accounts": [_rule(["impersonate"], ["serviceaccounts"])],
    "extra": [
        _rule(["impersonate"], ["users", "groups"]),
        _rule(["impersonate"], ["userextras/a"], _AUTHENTICATION),
        _rule(["impersonate"], ["uids"], _AUTHENTICATION, ["7"]),
    ],
    "constrained": [
        _rule(["impersonate:user-info"], ["users"], _AUTHENTICATION),
        _rule(["impersonate-on:user-info:create"], ["selfsubjectreviews"], _AUTHENTICATION),
    ],
    "constrained-account": [
        _rule(["impersonate:serviceaccount"], ["serviceaccounts"], _AUTHENTICATION),
        _rule(["impersonate-on:serviceaccount:create"], ["selfsubjectreviews"], _AUTHENTICATION),
    ],
    "constrained-node": [
        _rule(["impersonate:arbitrary-node"], ["nodes"], _AUTHENTICATION),
        _rule(["impersonate-on:arbitrary-node:create"], ["selfsubjectreviews"], _AUTHENTICATION),
    ],
    "half": [_rule(["impersonate:user-info"], ["users", "groups"], _AUTHENTICATION)],
}


@dataclass
class World:
    """The files and servers that all cases share. Certificates are created on first use."""

    folder: Path
    url: str
