"""Flags of authentication that contradict each other, or name unusable files: one line, in upstream's words."""

from pathlib import Path

import pytest

from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.flags import parse
from fakeapiserver.server.options.authentication import check_options
from fakeapiserver.transport.certificates import create_authority

ISSUER = "https://kubernetes.default.svc.cluster.local"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], ""),
        (["--oidc-issuer-url=https://a", "--oidc-client-id=b"], ""),
        (
            ["--oidc-issuer-url=https://a"],
            "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
        ),
        (
            ["--oidc-username-claim=sub"],
            "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
        ),
        (
            ["--authentication-config=FILE", "--oidc-client-id=b"],
            "authentication-config file and oidc-* flags are mutually exclusive",
        ),
        ([f"--service-account-issuer={ISSUER}"] * 2, f'service-account-issuer "{ISSUER}" is already specified'),
        (["--service-account-issuer="], "service-account-issuer should not be an empty string"),
        (
            ["--service-account-jwks-uri=http://a"],
            "service-account-jwks-uri requires https scheme, parsed as: http://a",
        ),
        (
            ["--service-account-max-token-expiration=59m"],
            "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
        ),
        (
            ["--service-account-issuer=https://a:b"],
            "service-account-issuer \"https://a:b\" contained a ':' but was not a valid URL: "
            'parse "https://a:b": invalid port ":b" after host',
        ),
        (
            ["--service-account-signing-key-file=FILE"],
            "failed to parse service-account-issuer-key-file: error reading private key file FILE: data does not contain a "
            "valid RSA or ECDSA private key",
        ),
        (["--requestheader-username-headers=a, ,b"], 'empty value in "requestheader-username-headers"'),
        (
            ["--requestheader-uid-headers=x-uid"],
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will "
            "not work",
        ),
        (
            ["--client-ca-file=AUTHORITY", "--requestheader-client-ca-file=AUTHORITY"],
            "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; "
            "--requestheader-allowed-names must be specified to ensure regular client certificates cannot set "
            "authenticating proxy headers for arbitrary users",
        ),
        (
            [
                "--client-ca-file=AUTHORITY",
                "--requestheader-client-ca-file=AUTHORITY",
                "--requestheader-allowed-names=front",
            ],
            "",
        ),
        (
            ["--service-account-jwks-uri=http://a", "--oidc-client-id=b"],
            "[oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set, "
            "service-account-jwks-uri requires https scheme, parsed as: http://a]",
        ),
    ],
)
def test_what_goes_together(flags: list[str], message: str, tmp_path: Path) -> None:
    file, authority = tmp_path / "file", tmp_path / "authority"
    file.touch()
    authority.write_bytes(create_authority().certificate)
    config = parse([flag.replace("FILE", str(file)).replace("AUTHORITY", str(authority)) for flag in flags]).config
    if not message:
        check_options(config)
        return
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        check_options(config)
    assert str(refused.value) == message.replace("FILE", str(file))


def test_lists_add_up_and_claims_are_gathered() -> None:
    flags = [
        "--oidc-required-claim=a=1",
        "--oidc-required-claim=b=2=3",
        "--service-account-issuer=x",
        "--service-account-issuer=y",
    ]
    config = parse([*flags, "--oidc-signing-algs=ES256,RS512"]).config
    assert config.oidc_required_claim == {"a": "1", "b": "2=3"}
    assert config.service_account_issuer == ("x", "y")
    assert config.oidc_signing_algs == ("ES256", "RS512")


@pytest.mark.parametrize("flag", ["--oidc-required-claim=a", "--service-account-lookup=x", '--api-audiences="a'])
def test_values_that_can_not_be_read(flag: str) -> None:
    with pytest.raises(UsageError):
        parse([flag])


def test_uid_headers_need_their_gate() -> None:
    config = parse(["--requestheader-uid-headers=X-Remote-Uid"]).config
    check_options(config)
    needed = '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled'
    with pytest.raises(ValueError, match=f"^{needed}$"):
        check_options(config, FeatureGates("v1.36", {"RemoteRequestHeaderUID": False}))
