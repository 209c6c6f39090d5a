"""Tests the trust that several API servers of a cluster publish together for aggregated servers.

Upstream: clusterauthenticationtrust/cluster_authentication_trust_controller_test.go.
"""

import json

import pytest

from fakeapiserver.auth.authenticators.requestheader import RequestHeaderConfig
from fakeapiserver.clock import SystemClock
from fakeapiserver.server.proxies.front_proxy import combined, trust
from fakeapiserver.transport.certificates import LIFETIME, create_authority

NOW = SystemClock().now()
FIRST, SECOND, CLIENTS = (create_authority(name).certificate for name in ("first", "second", "clients"))


def test_without_a_configuration_nothing_is_published() -> None:
    assert trust(b"", None) == {}
    assert trust(CLIENTS, None) == {"client-ca-file": CLIENTS.decode()}
    assert "requestheader-uid-headers" not in trust(b"", RequestHeaderConfig(FIRST, uid_headers=()))


def test_both_servers_authorities_and_names_stay() -> None:
    mine = trust(CLIENTS, RequestHeaderConfig(FIRST, ("a",)))
    theirs = {**trust(CLIENTS, RequestHeaderConfig(SECOND, ("b", "a"), group_headers=("X-G",))), "unknown": "x"}
    both = combined(theirs, mine, NOW)
    assert both == {
        **mine,
        "requestheader-allowed-names": '["b","a"]',
        "requestheader-group-headers": '["X-G","X-Remote-Group"]',
        "requestheader-client-ca-file": (SECOND + FIRST).decode(),
    }
    assert combined(both, mine, NOW) == both


def test_an_authority_that_has_expired_goes() -> None:
    mine = trust(CLIENTS, None)
    assert combined(mine, mine, NOW + LIFETIME.total_seconds() + 1) == {}


@pytest.mark.parametrize("broken", [{"client-ca-file": "x"}, {"requestheader-allowed-names": "x"}])
def test_what_cannot_be_read_is_left_alone(broken: dict[str, str]) -> None:
    mine = trust(CLIENTS, RequestHeaderConfig(FIRST))
    with pytest.raises(ValueError):  # noqa: PT011
        combined({**mine, **broken}, mine, NOW)
    assert json.loads(mine["requestheader-allowed-names"]) == ["front-proxy-client"]
