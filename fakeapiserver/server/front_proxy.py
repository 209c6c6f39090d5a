"""The front proxy's certificate and headers, and how aggregated servers learn of them.

Upstream: pkg/controlplane/controller/clusterauthenticationtrust, k8s.io/apiserver/pkg/server/options/authentication.go.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from fakeapiserver.auth.authenticators.requestheader import RequestHeaderConfig
from fakeapiserver.transport.certificates import KeyPair

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """`headers`: whom this server believes, None: nobody. `client`: what it shows aggregated servers."""

    headers: RequestHeaderConfig | None = None
    client: KeyPair | None = None


def config_map(client_ca: bytes, headers: RequestHeaderConfig | None) -> dict[str, Any] | None:
    """What an aggregated server reads when it starts; None when there is nothing to tell."""
    data = {}
    if client_ca:
        data["client-ca-file"] = client_ca.decode()
    if headers is not None:
        data |= {
            "requestheader-allowed-names": _strings(headers.allowed_names),
            "requestheader-client-ca-file": headers.client_ca.decode(),
            "requestheader-extra-headers-prefix": _strings(headers.extra_header_prefixes),
            "requestheader-group-headers": _strings(headers.group_headers),
            "requestheader-username-headers": _strings(headers.username_headers),
        }
        if headers.uid_headers:
            data["requestheader-uid-headers"] = _strings(headers.uid_headers)
    if not data:
        return None
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
