"""Tests anonymous requests: upstream rejects them if every user may do everything."""

import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from fakeapiserver.cli.flags import parse
from fakeapiserver.cluster import Cluster

_WARNING = (
    "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. "
    "You should use a different authorizer"
)
_FILES = {
    "anonymous.yaml": """
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /livez}]}
""",
    "nothing.yaml": """
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt: []
""",
}


def _status(cluster: Cluster, path: str, headers: dict[str, str]) -> int:
    context = ssl.create_default_context(cadata=cluster.ca.decode())
    request = urllib.request.Request(cluster.url + path, headers=headers)
    try:
        with urllib.request.urlopen(request, context=context, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize(
    ("flags", "health", "liveness"),
    [
        (["--authorization-mode=RBAC"], 200, 200),
        (["--authorization-mode=RBAC", "--anonymous-auth=false"], 401, 401),
        (["--authorization-mode=AlwaysAllow"], 401, 401),
        (["--authorization-mode=AlwaysAllow", "--anonymous-auth=true"], 401, 401),
        (["--authorization-mode=RBAC,AlwaysAllow"], 401, 401),
        (["--authorization-mode=AlwaysAllow", "--authentication-config=nothing.yaml"], 401, 401),
        # A file that says who may be anonymous decides.
        (["--authorization-mode=AlwaysAllow", "--authentication-config=anonymous.yaml"], 401, 200),
    ],
)
def test_requests_without_credentials(
    flags: list[str],
    health: int,
    liveness: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in _FILES.items():
        Path(name).write_text(text)
    with Cluster.from_config(parse([*flags, "--controllers="]).config) as cluster:
        assert _status(cluster, "/healthz", {}) == health
        assert _status(cluster, "/livez", {}) == liveness
        assert _status(cluster, "/api/v1/namespaces/default", {"Authorization": f"Bearer {cluster.token}"}) == 200
    is_warned = _WARNING in [record.message for record in caplog.records]
    assert is_warned == any("AlwaysAllow" in flag for flag in flags)
