"""Others check service account tokens with what the server publishes about its keys."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

import jwt
import pytest

from fakeapiserver import Cluster

# the server alone: no controller writes
pytestmark = pytest.mark.fake_cluster(controllers=())


def send(cluster: Cluster, path: str, body: Any = None, **headers: str) -> Any:
    """Sends a request as the admin; a body is sent with POST."""
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    data = None if body is None else json.dumps(body).encode()
    all_headers = {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json", **headers}
    request = urllib.request.Request(cluster.url + path, data, all_headers)
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        return json.load(answer)


def mint(cluster: Cluster) -> str:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    send(cluster, accounts, {"metadata": {"name": "robot"}})
    answer = send(cluster, f"{accounts}/robot/token", {"spec": {"audiences": ["vault"]}})
    return str(answer["status"]["token"])


def test_a_token_can_be_checked_with_the_published_keys(fake_cluster: Cluster) -> None:
    configuration = send(fake_cluster, "/.well-known/openid-configuration")
    assert configuration["jwks_uri"] == f"{fake_cluster.url}/openid/v1/jwks"
    keys = jwt.PyJWKSet.from_dict(send(fake_cluster, "/openid/v1/jwks"))
    token = mint(fake_cluster)
    claims = jwt.decode(
        token,
        keys[jwt.get_unverified_header(token)["kid"]],
        algorithms=configuration["id_token_signing_alg_values_supported"],
        audience="vault",
        issuer=configuration["issuer"],
    )
    assert claims["sub"] == "system:serviceaccount:default:robot"


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/openid/v1/jwks", "/openid/v1/jwks/"])
@pytest.mark.parametrize(("options", "code"), [({"Accept": "application/yaml"}, 406), ({"body": {}}, 405)])
def test_they_are_routes_like_others(fake_cluster: Cluster, path: str, options: dict[str, Any], code: int) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        send(fake_cluster, path, **options)
    assert refused.value.code == code
    refused.value.close()
