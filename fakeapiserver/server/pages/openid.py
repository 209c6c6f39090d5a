"""The documents for verifying service account tokens elsewhere: /.well-known/openid-configuration and /openid/v1/jwks.

Upstream: k8s.io/kubernetes/pkg/routes/openidmetadata.go, pkg/serviceaccount/openidmetadata.go.
"""

from typing import Any, Final
from urllib.parse import urlsplit

from fakeapiserver.apimachinery.errors import new_generic_method_not_allowed, new_generic_not_found
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.endpoints.negotiation.media_types import JSON, check_route
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.services import TokenIssuer

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
JWKS_PATH: Final = "/openid/v1/jwks"
_JWKS: Final = "application/jwk-set+json"
_CACHE_CONTROL: Final = b"public, max-age=3600"


def configuration(request: Request, issuer: TokenIssuer, address: str) -> Response:
    """`address` is where clients find the keys: host:port."""
    document = {
        "issuer": issuer.issuer,
        "jwks_uri": issuer.jwks_uri or f"https://{address}{JWKS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({key["alg"] for key in issuer.keys.jwks()}),
    }
    return _answer(request, JSON, document)


def jwks(request: Request, issuer: TokenIssuer) -> Response:
    return _answer(request, _JWKS, {"keys": issuer.keys.jwks()})


def below(request: Request) -> None:
    """Raises StatusError 404 for paths below the two documents."""
    if request.path.startswith((f"{CONFIGURATION_PATH}/", f"{JWKS_PATH}/")):
        raise new_generic_not_found()


def is_published(issuer: TokenIssuer) -> bool:
    """Others could find an issuer that is an https URL only, without query and fragment."""
    try:
        url = urlsplit(issuer.issuer)
    except ValueError:
        return False
    return url.scheme == "https" and not url.query and not url.fragment


def _answer(request: Request, media_type: str, document: Any) -> Response:
    if request.method != "GET":
        raise new_generic_method_not_allowed()
    check_route(request.header(b"accept"), [media_type])
    return Response(200, json.encode(document), media_type, cache_control=_CACHE_CONTROL)
