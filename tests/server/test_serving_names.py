"""The names in the certificate that a server makes for itself."""

import errno

import pytest

from fakeapiserver.cli.flags import parse
from fakeapiserver.server.own_certificates import serving_names
from fakeapiserver.transport.certificates import SERVER_NAMES


@pytest.mark.parametrize(
    ("flags", "more"),
    [
        ([], {"10.0.0.1"}),
        (["--advertise-address=192.0.2.10"], {"10.0.0.1", "192.0.2.10"}),
        (
            ["--bind-address=0.0.0.0", "--advertise-address=192.0.2.10", "--external-hostname=ci.example.com"],
            {"10.0.0.1", "0.0.0.0", "192.0.2.10", "ci.example.com"},
        ),
        (["--service-cluster-ip-range=10.96.0.0/16", "--external-hostname=192.0.2.7"], {"10.96.0.1", "192.0.2.7"}),
    ],
)
def test_names(flags: list[str], more: set[str]) -> None:
    assert {*serving_names(parse(flags).config)} == {*SERVER_NAMES, *more}


class Route:
    """A datagram socket of a machine with this address, or, without one, without a route."""

    def __init__(self, own: str | None) -> None:
        self._own = own

    def __enter__(self) -> "Route":
        return self

    def __exit__(self, *_: object) -> None: ...

    def connect(self, _address: tuple[str, int]) -> None:
        if self._own is None:
            raise OSError(errno.ENETUNREACH, "Network is unreachable")

    def getsockname(self) -> tuple[str | None, int]:
        return self._own, 40_000


@pytest.mark.parametrize("own", ["198.51.100.7", None])
def test_the_address_of_the_default_route_where_all_are_listened_on(
    own: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fakeapiserver.server.own_certificates.socket.socket", lambda family, kind: Route(own))
    names = {*serving_names(parse(["--bind-address=0.0.0.0"]).config)}
    assert names == {*SERVER_NAMES, "10.0.0.1", "0.0.0.0", *filter(None, [own])}
