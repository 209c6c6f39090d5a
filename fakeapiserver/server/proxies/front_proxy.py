"""The front proxy's certificate and headers, and how aggregated servers learn of them.

Upstream: pkg/controlplane/controller/clusterauthenticationtrust, k8s.io/apiserver/pkg/server/options/authentication.go.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.auth.authenticators.requestheader import REQUEST_HEADER_UID, RequestHeaderConfig
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.registry.generic.write_request import WriteRequest
from fakeapiserver.server.upkeep.bootstrap import store_object
from fakeapiserver.storage.interface import KeyExists
from fakeapiserver.transport.key_pair import KeyPair

log = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
_REQUEST_HEADER_CA: Final = "requestheader-client-ca-file"
_UID_HEADERS: Final = "requestheader-uid-headers"
_LISTS: Final = (
    "requestheader-username-headers",
    _UID_HEADERS,
    "requestheader-group-headers",
    "requestheader-extra-headers-prefix",
    "requestheader-allowed-names",
)
_INTERVAL: Final = 60.0
_SERVER: Final = UserInfo("system:apiserver", groups=("system:masters",))


class FrontProxy(Struct, frozen=True):
    """The front proxy's configuration.

    `headers`: the accepted proxies, or None. `client`: this server's certificate for aggregated servers.
    """

    headers: RequestHeaderConfig | None = None
    client: KeyPair | None = None

    def heeding(self, features: FeatureGates) -> "FrontProxy":
        """Returns a configuration without uids if their gate is off."""
        if self.headers is None or features.enabled(REQUEST_HEADER_UID):
            return self
        return replace(self, headers=replace(self.headers, uid_headers=()))


class ClusterAuthenticationTrust:
    """Keeps the ConfigMap that an aggregated server reads when it starts.

    Entries of other servers of the cluster stay; `client_ca` returns the current bundle (PEM).
    """

    def __init__(
        self, scopes: RequestScopes, client_ca: Callable[[], bytes], headers: RequestHeaderConfig | None
    ) -> None:
        self._scopes = scopes
        self._client_ca = client_ca
        self._headers = headers

    async def sync(self) -> None:
        """Writes it where that makes a difference."""
        scope = self._scope()
        assert scope.store is not None
        required = trust(self._client_ca(), self._headers)
        stored = self._scopes.storage.get_now(scope.store.key(NAMESPACE, NAME))
        if stored is None:
            if required:
                with suppress(KeyExists):
                    await store_object(scope, _config_map(required), rfc3339(self._scopes.clock.now()))
            return
        existing = scope.store.decode(stored.value).get("data") or {}
        if existing == required:
            return
        both = combined(existing, required, self._scopes.clock.now())
        if existing != both:
            await self._update(scope, both)

    async def run(self) -> None:
        """Runs until cancelled: when it comes or goes, and every minute."""
        scope = self._scope()
        assert scope.store is not None
        key = scope.store.key(NAMESPACE, NAME)
        while True:
            watcher = self._scopes.storage.watch(
                scope.store.collection(NAMESPACE), predicate=lambda stored: stored.key == key
            )
            try:
                while (events := await watcher.next_batch(_INTERVAL)) is not None:
                    if not events or any(event.type != "MODIFIED" for event in events):
                        await self._try()
            finally:
                watcher.close()
            await asyncio.sleep(0)  # a closed storage ends each watch at once

    async def _try(self) -> None:
        try:
            await self.sync()
        except (ValueError, StatusError) as error:
            log.error("configmap %s/%s can't be kept: %s", NAMESPACE, NAME, error)

    async def _update(self, scope: RequestScope, data: dict[str, str]) -> None:
        assert scope.store is not None

        def transform(current: Object | None) -> Object:
            assert current is not None
            return {**current, "data": data}

        request = WriteRequest(kind=scope.kind, user=_SERVER, manager="kube-apiserver", namespace=NAMESPACE, name=NAME)
        await scope.store.write(request, transform)

    def _scope(self) -> RequestScope:
        scope = self._scopes.lookup("", "v1", "configmaps")
        assert scope is not None
        return scope


def trust(client_ca: bytes, headers: RequestHeaderConfig | None) -> dict[str, str]:
    """Returns this server's entries."""
    data = {"client-ca-file": client_ca.decode()} if client_ca else {}
    if headers is None:
        return data
    lists = {
        "requestheader-username-headers": headers.username_headers,
        "requestheader-uid-headers": headers.uid_headers,
        "requestheader-group-headers": headers.group_headers,
        "requestheader-extra-headers-prefix": headers.extra_header_prefixes,
        "requestheader-allowed-names": headers.allowed_names,
    }
    told = {name: _strings(values) for name, values in lists.items() if values or name != _UID_HEADERS}
    return {**data, **told, _REQUEST_HEADER_CA: headers.client_ca.decode()}


def combined(existing: dict[str, str], required: dict[str, str], now: float) -> dict[str, str]:
    """Both servers' lists and authorities, and nothing else. ValueError for an existing one that can't be read."""
    data = {}
    for name in ("client-ca-file", _REQUEST_HEADER_CA):
        if bundle := _united(existing.get(name, ""), required.get(name, ""), now):
            data[name] = bundle
    if _REQUEST_HEADER_CA not in data:
        return data
    for name in _LISTS:
        values = [*json.loads(existing.get(name) or "[]"), *json.loads(required.get(name) or "[]")]
        if values or name != _UID_HEADERS:
            data[name] = _strings(tuple(dict.fromkeys(values)))
    return data


def _united(existing: str, required: str, now: float) -> str:
    """The certificates of both that haven't expired, each once. ValueError."""
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificates

    certificates = [
        certificate
        for text in (existing, required)
        if text
        for certificate in load_pem_x509_certificates(text.encode())
    ]
    valid = [certificate for certificate in certificates if certificate.not_valid_after_utc.timestamp() > now]
    return "".join(dict.fromkeys(certificate.public_bytes(Encoding.PEM).decode() for certificate in valid))


def _config_map(data: dict[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {f"f:{key}": {} for key in sorted(data)}
    entry = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {".": {}, **fields}},
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "managedFields": [entry]},
        "data": dict(sorted(data.items())),
    }


def _strings(values: tuple[str, ...]) -> str:
    return json.dumps(values, separators=(",", ":"))
