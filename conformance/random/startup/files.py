"""Random kubeconfigs of webhooks, token files and files with certificates."""

import base64
import json
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from conformance.random.authorization_files import Case, pick, set_somewhere
from conformance.random.startup.values import BAD_PEM, ODD, URLS, spoilt_text


def kubeconfigs(rng: random.Random, folder: Path) -> Case:
    """Returns a kubeconfig of the token webhook or of the authorization webhook."""
    authority, pair = (folder / "ca.crt").read_text(), (folder / "serving.pem").read_text()
    files = {"bad.pem": BAD_PEM, "token": "abc\n", "pair.pem": pair, "empty": ""}
    names = ["ca.crt", "{folder}/ca.crt", "/no/file", "bad.pem", "pair.pem", "first.key", "", "empty", "."]
    encoded = [base64.b64encode(text.encode()).decode() for text in (authority, pair, BAD_PEM, "x", "")] + ["%", "AA"]
    cluster: dict[str, Any] = {"server": "https://127.0.0.1:1/x"}
    user: dict[str, Any] = {}
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    changes = [
        *_cluster_changes(rng, cluster, names, encoded),
        *_user_changes(rng, user, names, encoded),
        *_config_changes(rng, config),
    ]
    for change in rng.sample(changes, rng.randrange(1, 4)):
        with suppress(AttributeError, KeyError):
            change()
    text = json.dumps(config) if rng.random() < 0.3 else yaml.safe_dump(config, allow_unicode=True)
    if rng.random() < 0.05:
        text = spoilt_text(rng, text)
    files["hook.kubeconfig"] = text
    return _webhook_flags(rng), files


def _cluster_changes(
    rng: random.Random, cluster: dict[str, Any], names: Sequence[str], encoded: Sequence[str]
) -> list[Callable[[], Any]]:
    """Returns changes of the kubeconfig's cluster."""
    return [
        lambda: cluster.update(server=pick(rng, *URLS, "127.0.0.1:1", "127.0.0.1", "http://127.0.0.1:1", "unix:///x")),
        lambda: cluster.update({"certificate-authority": rng.choice(names)}),
        lambda: cluster.update({"certificate-authority-data": rng.choice(encoded)}),
        lambda: cluster.update({"insecure-skip-tls-verify": pick(rng, True, False, "x", 1)}),
        lambda: cluster.update({"tls-server-name": pick(rng, "x", "", "a b")}),
        lambda: cluster.update(
            {"proxy-url": pick(rng, "http://proxy", "ftp://x", "x", "socks5://x", "://", "http://[", "")}
        ),
        lambda: cluster.update({"disable-compression": True}),
    ]


def _user_changes(
    rng: random.Random, user: dict[str, Any], names: Sequence[str], encoded: Sequence[str]
) -> list[Callable[[], Any]]:
    """Returns changes of the kubeconfig's user."""
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true", "interactiveMode": "Never"}
    return [
        lambda: user.update({"client-certificate": rng.choice(names)}),
        lambda: user.update({"client-key": rng.choice(names)}),
        lambda: user.update({"client-certificate": "pair.pem", "client-key": "pair.pem"}),
        lambda: user.update({"client-certificate-data": encoded[1], "client-key-data": encoded[1]}),
        lambda: user.update({"client-certificate-data": rng.choice(encoded)}),
        lambda: user.update({"client-key-data": rng.choice(encoded)}),
        lambda: user.update(token="abc"),
        lambda: user.update(tokenFile=pick(rng, "token", "/no/file", "empty", "")),
        lambda: user.update(username="a", password="b"),
        lambda: user.update(username="a"),
        lambda: user.update(password="b"),
        lambda: user.update({"as": "jane", "as-groups": ["a"], "as-uid": "1", "as-user-extra": {"a": ["b"]}}),
        lambda: user.update({"as-groups": ["a"]}),
        lambda: user.update({"auth-provider": {"name": pick(rng, "oidc", "gcp", "azure", "", "x")}}),
        lambda: user.update(exec=plugin),
        lambda: user.update(exec={**plugin, "interactiveMode": pick(rng, "IfAvailable", "Always", "x", "")}),
        lambda: user.update(exec={**plugin, "command": pick(rng, "", "/no/program", "true")}),
        lambda: user.update(
            exec={
                **plugin,
                "apiVersion": pick(
                    rng, "", "v1", "client.authentication.k8s.io/v1beta1", "client.authentication.k8s.io/v1alpha1"
                ),
            }
        ),
        lambda: user.update(exec={**plugin, "env": [{"name": "", "value": "x"}]}),
        lambda: user.update(exec={**plugin, "provideClusterInfo": True}),
        lambda: user.update(exec={}),
    ]


def _config_changes(rng: random.Random, config: dict[str, Any]) -> list[Callable[[], Any]]:
    """Returns changes of the kubeconfig as a whole."""
    return [
        lambda: config.update({"current-context": pick(rng, "nope", "", None, "x")}),
        lambda: config.pop("current-context"),
        lambda: config.update(contexts=pick(rng, [], None, [{"name": "x"}], [{"name": "x", "context": {}}])),
        lambda: config.update(contexts=[{"name": "x", "context": {"cluster": pick(rng, "nope", ""), "user": "u"}}]),
        lambda: config.update(contexts=[{"name": "x", "context": {"cluster": "c", "user": pick(rng, "nope", "")}}]),
        lambda: config.update(contexts=[{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "a b"}}]),
        lambda: config.update(clusters=pick(rng, [], None, [{"name": "c"}], [{"name": "c", "cluster": {}}], [{}])),
        lambda: config.update(users=pick(rng, [], None, [{"name": "u"}], [{}])),
        lambda: config.update(apiVersion=pick(rng, "v2", "", None, 5)),
        lambda: config.update(kind=pick(rng, "x", "", None, 5)),
        lambda: config["users"].append({"name": "u", "user": {"token": "t"}}),
        lambda: config["clusters"].append({"name": "c", "cluster": {"server": "https://other"}}),
        lambda: config.update(preferences=pick(rng, {}, {"colors": True}, "x")),
        lambda: config.update(unknown=1),
        lambda: set_somewhere(rng, config, rng.choice(ODD)),
    ]


def _webhook_flags(rng: random.Random) -> list[str]:
    """Returns flags that name the kubeconfig."""
    path = pick(rng, *["{folder}/hook.kubeconfig"] * 20, "/no/file", "{folder}")
    flags = [f"--authentication-token-webhook-config-file={path}"]
    if rng.random() < 0.1:
        flags.append(f"--authentication-token-webhook-version={pick(rng, 'v1', 'v1beta1', 'v2', '', 'V1')}")
    if rng.random() < 0.1:
        flags.append(f"--authentication-token-webhook-cache-ttl={pick(rng, '0', '1s', '-1s', 'x', '5')}")
    if rng.random() < 0.2:
        flags[0] = f"--authorization-webhook-config-file={path}"
        flags.append("--authorization-mode=Webhook")
    return flags


_ROWS: Final = [
    "t,u,1",
    't,u,1,"a,b"',
    "t,u",
    "t",
    "",
    ",u,1",
    't,"u,1',
    't,u"x,1',
    't,"u"x,1',
    "t,u,1,a,b,c",
    "# comment",
    " t , u , 1 ",
    't,u,1,""',
    "t,u,1,a",
    '"t","u","1"',
    "t,ü,1",
    "\ufefft,u,1",
    "t,,",
    't,"a""b",1',
    't,"multi\nline",1',
    "t\tu\t1",
]


_REQUEST_HEADERS: Final = [
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-username-headers=X-Remote-User, ,X",
    "--requestheader-username-headers=",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-group-headers= ",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    "--requestheader-extra-headers-prefix=,",
    "--requestheader-uid-headers=X-Remote-Uid",
    "--requestheader-uid-headers= ",
    "--requestheader-allowed-names=a,b",
    "--requestheader-allowed-names=",
    "--requestheader-username-headers=x-remote-user",
    "--requestheader-username-headers=Authorization",
    "--requestheader-group-headers=x-remote-GROUP,X-Remote-Group",
    "--requestheader-extra-headers-prefix=x-remote-",
    "--requestheader-uid-headers=x-remote-user",
]


def token_and_certificate_files(rng: random.Random, folder: Path) -> Case:
    authority, other = (folder / "ca.crt").read_text(), (folder / "other.crt").read_text()
    files = {
        "tokens.csv": pick(rng, "\n", "\r\n").join(rng.choice(_ROWS) for _ in range(rng.randrange(1, 5))),
        "bundle.pem": pick(
            rng,
            authority,
            other,
            authority + other,
            "",
            "x",
            BAD_PEM,
            authority + BAD_PEM,
            authority[:200],
            "x\n" + authority + "y",
        ),
        "proxy.pem": pick(rng, authority, other, other + authority, "", BAD_PEM),
    }
    files["key.pem"] = (folder / "first.key").read_text()
    flags = []
    if rng.random() < 0.6:
        flags.append(f"--token-auth-file={pick(rng, *['{folder}/tokens.csv'] * 9, '/no/file', '{folder}')}")
    if rng.random() < 0.5:
        flags.append(
            f"--client-ca-file={pick(rng, *['{folder}/bundle.pem'] * 5, '/no/file', '', '{folder}', '{folder}/key.pem')}"
        )
    if rng.random() < 0.4:
        flags.append(
            f"--requestheader-client-ca-file={pick(rng, *['{folder}/proxy.pem'] * 5, '/no/file', '', '{folder}', '{folder}/bundle.pem')}"
        )
        flags += rng.sample(
            _REQUEST_HEADERS,
            rng.randrange(0, 4),
        )
    elif rng.random() < 0.3:
        flags.append("--requestheader-username-headers=X-Remote-User")
    return flags, files
