"""Flags of authentication that contradict each other, or name unusable files: one line, in upstream's words."""

from pathlib import Path

import pytest

from fakeapiserver.cli.flags import UsageError, parse
from fakeapiserver.server.authentication import check_options

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
            ["--service-account-jwks-uri=http://a", "--oidc-client-id=b"],
            "[oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set, "
            "service-account-jwks-uri requires https scheme, parsed as: http://a]",
        ),
    ],
)
def test_what_goes_together(flags: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    config = parse([flag.replace("FILE", str(tmp_path / "file")) for flag in flags]).config
    if not message:
        check_options(config)
        return
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        check_options(config)
    assert str(refused.value) == message


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


@pytest.mark.parametrize("flag", ["--oidc-required-claim=a", "--service-account-lookup=x", "--oidc-ca-file=/none"])
def test_values_that_can_not_be_read(flag: str) -> None:
    with pytest.raises(UsageError):
        parse([flag])
