"""Bootstrap tokens: `<id>.<secret>`, kept in the secret `bootstrap-token-<id>` of kube-system.

Upstream: plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go, k8s.io/cluster-bootstrap/{token/api/types.go,util/secrets}.
"""

import base64
import hmac
import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.auth.interfaces import Response, UserInfo
from fakeapiserver.clock import Clock

_TOKEN: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_GROUP: Final = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_TYPE: Final = "bootstrap.kubernetes.io/token"
_BOOTSTRAPPERS: Final = "system:bootstrappers"


class BootstrapTokens(Struct, frozen=True):
    """Authenticates bootstrap tokens. A token without a usable secret is unknown: upstream does not say why."""

    secrets: ObjectReader
    clock: Clock

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Response | None:
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        token_id, token_secret = match.groups()
        secret = self.secrets.get("secrets", "kube-system", f"bootstrap-token-{token_id}")
        if secret is None or secret["metadata"].get("deletionTimestamp") or secret.get("type") != _TYPE:
            return None
        data = {key: _decoded(value) for key, value in (secret.get("data") or {}).items()}
        if not hmac.compare_digest(data.get("token-secret", b""), token_secret.encode()):
            return None
        if data.get("token-id") != token_id.encode() or self._expired(data.get("expiration", b"")):
            return None
        groups = _groups(data.get("auth-extra-groups", b""))
        if data.get("usage-bootstrap-authentication") != b"true" or groups is None:
            return None
        return Response(UserInfo(f"system:bootstrap:{token_id}", groups=groups))

    def _expired(self, expiration: bytes) -> bool:
        """Reports whether the time has passed; an invalid one counts as expired."""
        if not expiration:
            return False
        text = expiration.decode("utf-8", "replace")
        seconds = seconds_of(text) if _RFC3339.fullmatch(text) else None
        return seconds is None or seconds <= self.clock.now()


def _groups(extra: bytes) -> tuple[str, ...] | None:
    """Every bootstrapper's group and the extra ones, sorted; None when one of these is not a bootstrappers' group."""
    if not extra:
        return (_BOOTSTRAPPERS,)
    names = extra.decode("utf-8", "replace").split(",")
    if not all(_GROUP.fullmatch(name) for name in names):
        return None
    return tuple(sorted({_BOOTSTRAPPERS, *names}))


def _decoded(value: Any) -> bytes:
    return base64.b64decode(value or "")
