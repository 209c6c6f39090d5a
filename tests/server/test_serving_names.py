"""The names in the certificate that a server makes for itself."""

import pytest

from fakeapiserver.cli.flags import parse
from fakeapiserver.server.own_certificates import serving_names
from fakeapiserver.transport.certificates import SERVER_NAMES


@pytest.mark.parametrize(
    ("flags", "more"),
    [
        ([], {"10.0.0.1"}),
        (["--bind-address=0.0.0.0", "--external-hostname=ci.example.com"], {"10.0.0.1", "0.0.0.0", "ci.example.com"}),
        (["--service-cluster-ip-range=10.96.0.0/16", "--external-hostname=192.0.2.7"], {"10.96.0.1", "192.0.2.7"}),
    ],
)
def test_names(flags: list[str], more: set[str]) -> None:
    assert {*serving_names(parse(flags).config)} == {*SERVER_NAMES, *more}
