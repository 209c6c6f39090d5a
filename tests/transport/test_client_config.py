"""Kubeconfigs of webhooks that can't be used. The sentences are clientcmd's."""

from pathlib import Path

import pytest

from fakeapiserver.transport.client_config import load_kubeconfig

CLUSTER = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1/x'}}]\n"
CURRENT = "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no configuration has been provided, try setting KUBERNETES_MASTER environment variable"),
        (
            "current-context: nope",
            "[context was not found for specified context: nope, cluster has no server defined]",
        ),
        (f"clusters: [{{name: c, cluster: {{server: ''}}}}]\n{CURRENT}", 'no server found for cluster "c"'),
        (
            f"clusters: [{{name: c, cluster: {{server: 'https://x', certificate-authority: /nope}}}}]\n{CURRENT}",
            "unable to read certificate-authority /nope for c due to open /nope: no such file or directory",
        ),
        (
            f"{CLUSTER}users: [{{name: u, user: {{token: a, username: b}}}}]\n{CURRENT}",
            "more than one authentication method found for u; found [token basicAuth], only one is allowed",
        ),
        (
            f"{CLUSTER}users: [{{name: u, user: {{client-certificate-data: YQ==}}}}]\n{CURRENT}",
            "client-key-data or client-key must be specified for u to use the clientCert authentication method.",
        ),
        (
            f"{CLUSTER}users: [{{name: u, user: {{exec: {{interactiveMode: x, env: [{{value: v}}]}}}}}}]\n{CURRENT}",
            "[command must be specified for u to use exec authentication plugin, apiVersion must be specified for u to use "
            "exec authentication plugin, env variable name must be specified for u to use exec authentication plugin, "
            'invalid interactiveMode for u: "x"]',
        ),
        (
            f"{CLUSTER}users: [{{name: u, user: {{as-groups: [a]}}}}]\n{CURRENT}",
            "requesting uid, groups or user-extra for u without impersonating a user",
        ),
        (
            f"clusters: [{{name: c, cluster: {{server: 'https://x', proxy-url: 'ftp://x'}}}}]\n{CURRENT}",
            'invalid \'proxy-url\' "ftp://x" for cluster "c": unsupported scheme "ftp", must be http, https, or socks5',
        ),
    ],
)
def test_a_kubeconfig_that_cant_be_used_is_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "webhook.kubeconfig"
    file.write_text(text)
    with pytest.raises(ValueError, match="invalid configuration") as refused:
        load_kubeconfig(file)
    assert str(refused.value) == f"invalid configuration: {why}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("apiVersion: v2", 'no kind "Config" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"'),
        (
            "clusters: x",
            "json: cannot unmarshal string into Go struct field Config.clusters of type []v1.NamedCluster",
        ),
        (
            "clusters: [{name: c, cluster: {certificate-authority-data: '%'}}]",
            "illegal base64 data at input byte 0",
        ),
        (
            "users: [{name: u}, {name: u}]",
            'error converting *[]NamedAuthInfo into *map[string]*api.AuthInfo: duplicate name "u" in list',
        ),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "webhook.kubeconfig"
    file.write_text(text)
    with pytest.raises(ValueError, match="error loading") as refused:
        load_kubeconfig(file)
    assert str(refused.value) == f'error loading config file "{file}": {why}'


@pytest.mark.parametrize(
    ("cluster", "user", "why"),
    [
        (
            "certificate-authority-data: YQ==, insecure-skip-tls-verify: true",
            "",
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        (
            "certificate-authority-data: YQ==",
            "",
            "unable to load root certificates: unable to parse bytes as PEM block",
        ),
        (
            "",
            "client-certificate-data: YQ==, client-key-data: YQ==",
            "tls: failed to find any PEM data in certificate input",
        ),
        ("", "auth-provider: {name: x}", 'no Auth Provider found for name "x"'),
    ],
)
def test_what_no_connection_can_be_made_with_is_refused(tmp_path: Path, cluster: str, user: str, why: str) -> None:
    file = tmp_path / "webhook.kubeconfig"
    file.write_text(
        f"clusters: [{{name: c, cluster: {{server: 'https://x', {cluster}}}}}]\n"
        f"users: [{{name: u, user: {{{user}}}}}]\n{CURRENT}"
    )
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        load_kubeconfig(file)
    assert str(refused.value) == why


def test_a_file_that_isnt_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no such file") as refused:
        load_kubeconfig(tmp_path / "nope")
    assert str(refused.value) == f"stat {tmp_path}/nope: no such file or directory"


@pytest.mark.parametrize(("scheme", "authorization"), [("https", "Bearer secret"), ("http", "")])
def test_credentials_are_sent_to_webhooks_over_tls_only(tmp_path: Path, scheme: str, authorization: str) -> None:
    file = tmp_path / "webhook.kubeconfig"
    users = "users: [{name: u, user: {token: secret}}]\n"
    file.write_text(CLUSTER.replace("https", scheme) + users + CURRENT)
    assert load_kubeconfig(file).identity.authorization == authorization
