"""The data of secrets."""

import base64

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of


def secret_bytes(secret: Object, key: str) -> bytes:
    """The value of a key; empty where it isn't there."""
    return base64.b64decode((secret.get("data") or {}).get(key) or "")


def secret_text(secret: Object, key: str) -> str:
    return secret_bytes(secret, key).decode("utf-8", "replace")


def encoded(value: bytes) -> str:
    """Returns the value as it is written in `data`."""
    return base64.b64encode(value).decode()


def bootstrap_token_expires_in(secret: Object, now: float) -> float | None:
    """Seconds until a bootstrap token is of no use; None: never. What says no time is of no use already.

    Upstream: k8s.io/cluster-bootstrap/util/secrets."""
    text = secret_text(secret, "expiration")
    if not text:
        return None
    expiration = seconds_of(text) if "T" in text else None
    return 0.0 if expiration is None else max(0.0, expiration - now)
