"""Random flags and files of authentication and authorization, most of them wrong, given to the real kube-apiserver and to this one:
prints each difference in what they say before they exit once.

    python -m conformance.compare.access.startup --oracle PROGRAM --server PROGRAM [--port N] [--seed N] [--count N] [--topic NAME]

Both programs take kube-apiserver's flags; of the real one's there is no etcd, so it comes no further than its admission plugins.
`--show` prints what each case was.
"""

import argparse
import base64
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import yaml

from conformance.players import credentials
from conformance.random import authorization_files as random_authorization_files
from conformance.random.authorization_files import Case, pick, set_somewhere

_STARTED: Final = "started"
_PATIENCE: Final = 60.0  # seconds
_ISSUER: Final = "https://kubernetes.default.svc.cluster.local"


class Programs:
    """Both kube-apiservers, each with its own folder for the files that it writes."""

    def __init__(self, folder: Path, oracle: str, server: str, port: int) -> None:
        self._folder, self._oracle, self._server, self._port = folder, oracle, server, port

    def compare(self, flags: Sequence[str]) -> tuple[str, str]:
        """Returns the last message of each server."""
        found: dict[str, str] = {}

        def oracle() -> None:
            found["oracle"] = self._run([self._oracle], flags, self._port, "manifest file is empty")

        def server() -> None:
            found["server"] = self._run(self._server.split(), flags, self._port + 1, "")

        threads = [threading.Thread(target=work) for work in (oracle, server)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found["oracle"], found["server"]

    def _run(self, command: Sequence[str], flags: Sequence[str], port: int, marker: str) -> str:
        certificates = self._folder / f"certs-{port}"
        base = [
            "--etcd-servers=http://127.0.0.1:1",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={certificates}",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]
        process = subprocess.Popen(
            [*command, *base, *flags], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        timer = threading.Timer(_PATIENCE, process.kill)
        timer.start()
        watcher = None if marker else threading.Thread(target=_wait_for, args=(port, process))
        if watcher is not None:
            watcher.start()
        lines: list[str] = []
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if marker and marker in line:
                process.kill()
                lines.append(_STARTED)
                break
        status = process.wait()
        timer.cancel()
        if watcher is not None:
            watcher.join()
            if status in (-15, 0):
                return _STARTED
        return _STARTED if lines and lines[-1] == _STARTED else _complaint("".join(lines))


def _wait_for(port: int, process: "subprocess.Popen[str]") -> None:
    """Ends the process when it serves."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    while process.poll() is None:
        try:
            urlopen(f"https://127.0.0.1:{port}/version", context=context, timeout=2).close()
        except OSError as error:
            if getattr(error, "code", 0) == 0:
                time.sleep(0.05)
                continue
        process.terminate()
        process.wait()


def _complaint(text: str) -> str:
    """The error that a program ended with, without what is its own way of saying it."""
    if match := re.search(r'"command failed" err=<\n(.*?)\n >\n', text, re.DOTALL):
        return "\n".join(line.removeprefix("\t") for line in match[1].split("\n"))
    if match := re.search(r'"command failed" err="(.*)"\n', text):
        return str(json.loads(f'"{match[1]}"'))
    found = text.rpartition("\nError: ")[2] if "\nError: " in text else text.removeprefix("Error: ")
    if match := re.search(r"^F.*\] (.*)", text, re.MULTILINE):
        return match[1]
    return found.strip()[-2000:] or "nothing"


# --------------------------------------------------------------------- cases


_EXPRESSIONS: Final = (
    "claims.sub",
    "claims.email",
    "claims.?email.orValue('x')",
    "claims.email_verified ? claims.email : 'x'",
    "claims.a__dot__b",
    "claims['a.b']",
    "claims.groups",
    "claims.groups.map(g, 'x:' + g)",
    "claims.nope.deep",
    "claims",
    "claim.sub",
    "user.username",
    "true",
    "1",
    "'text'",
    "[1, 2]",
    "['a', 'b']",
    "claims.sub == 'x'",
    "claims.exp - claims.nbf <= 86400",
    "!user.username.startsWith('system:')",
    "user.groups.all(group, !group.startsWith('system:'))",
    "user.extra['x'].size() > 0",
    "user.nope",
    "claims.sub +",
    "",
    " ",
    "has(claims.sub)",
    "claims.__namespace__",
    "claims.for",
    "claims.sub.split(',')",
    "claims.sub.split(',')[0]",
    "request.user",
    "string(claims.number)",
    "quantity('1Gi').isInteger()",
    "claims.?email.optMap(e, e).orValue('')",
    "ip('127.0.0.1').family() == 4",
    "{'a': 'b'}",
    "null",
    "dyn(claims.sub)",
    "claims.sub\n+ 'x'",
    "1 +\n\t'x'",
    "timestamp(claims.iat)",
    "type(claims.sub)",
    "claims.all(k, k != 'x')",
    "claims.exists(x, y, x == y)",
    "cel.bind(x, claims.sub, x)",
    "authorizer",
    "sets.contains(claims.groups, ['a'])",
    "url('https://x').getHost()",
    "claims.sub.matches('(')",
    "x" * 30,
)
_URLS: Final = (
    "https://issuer",
    "https://issuer/",
    "https://issuer/path",
    "http://issuer",
    "issuer",
    "https://user:pw@issuer",
    "https://user@issuer",
    "https://issuer?a=b",
    "https://issuer?",
    "https://issuer#x",
    "https://issuer#",
    "https://[::1]:80",
    "https://[::1",
    "https://issuer:port",
    "https://issuer:99999",
    "https://is suer",
    "https://issuer/%zz",
    "https://issuer/%2e",
    "https://%41",
    "https://iss\tuer",
    "https:issuer",
    "https://",
    "https:///x",
    "HTTPS://issuer",
    "://x",
    ":",
    "",
    " ",
    "ünïcode",
    "https://ünïcode",
    _ISSUER,
    "https://a:b:c",
    "//issuer",
    "1https://x",
    "https://issuer\u007f",
)
_KEYS: Final = (
    "example.com/team",
    "example.com/Team",
    "k8s.io/x",
    "a.k8s.io/x",
    "kubernetes.io/x",
    "xk8s.io/y",
    "team",
    "",
    "/x",
    "example.com/",
    "example.com/a/b",
    "-x.com/a",
    "example.com/ä",
    "example.com/a b",
    "EXAMPLE.com/a",
    "authentication.kubernetes.io/credential-id",
    "example.com/" + "a" * 300,
)
_ODD: Final[tuple[Any, ...]] = (None, "", "x", 5, 1.5, True, [], {}, [None], [1], ["x"], [{}], {"x": 1}, [[]])


def _jwt(rng: random.Random) -> dict[str, Any]:
    rule = {"claim": "hd", "requiredValue": "x"}
    return {
        "issuer": {"url": f"https://issuer{rng.randrange(3)}", "audiences": ["app"]},
        "claimMappings": {
            "username": pick(rng, {"claim": "sub", "prefix": ""}, {"expression": "claims.sub"}),
            **pick(
                rng, {}, {"groups": {"claim": "groups", "prefix": "g:"}}, {"groups": {"expression": "claims.groups"}}
            ),
            **pick(rng, {}, {"uid": {"claim": "uid"}}, {"uid": {"expression": "claims.uid"}}),
            **pick(rng, {}, {"extra": [{"key": "example.com/a", "valueExpression": "claims.a"}]}),
        },
        **pick(rng, {}, {"claimValidationRules": [rule]}),
        **pick(rng, {}, {"userValidationRules": [{"expression": "user.username != ''", "message": "m"}]}),
    }


def _broken_jwt(rng: random.Random, jwt: dict[str, Any], authority: str) -> None:
    """Makes one change to the configuration."""
    issuer, mappings = jwt["issuer"], jwt["claimMappings"]
    text = rng.choice(_EXPRESSIONS)
    change = rng.randrange(16)
    if change == 0:
        issuer["url"] = rng.choice(_URLS)
    elif change == 1:
        issuer["discoveryURL"] = rng.choice((*_URLS, issuer["url"], issuer["url"] + "/"))
    elif change == 2:
        issuer["audiences"] = pick(rng, [], [""], ["a", "a"], ["a", "b"], ["a", ""], None, ["", ""])
    elif change == 3:
        issuer["audienceMatchPolicy"] = pick(rng, "MatchAny", "", "matchAny", "MatchAll")
        if rng.random() < 0.5:
            issuer["audiences"] = ["a", "b"]
    elif change == 4:
        issuer["certificateAuthority"] = pick(rng, authority, "x", "", _BAD_PEM, authority + "x", authority * 2)
    elif change == 5:
        issuer["egressSelectorType"] = pick(rng, "controlplane", "cluster", "", "etcd", "Cluster")
    elif change == 6:
        mappings["username"] = _prefixed(rng, text)
    elif change == 7:
        mappings["groups"] = _prefixed(rng, text)
    elif change == 8:
        mappings["uid"] = pick(rng, {"expression": text}, {"claim": "x", "expression": text}, {}, {"claim": ""})
    elif change == 9:
        mappings["extra"] = [
            pick(
                rng,
                {"key": rng.choice(_KEYS), "valueExpression": "claims.a"},
                {"key": "example.com/a", "valueExpression": rng.choice(_EXPRESSIONS)},
            )
            for _ in range(rng.randrange(1, 4))
        ]
    elif change in (10, 11):
        jwt["claimValidationRules"] = [_rule(rng) for _ in range(rng.randrange(1, 4))]
    elif change == 12:
        rules = [
            pick(rng, {"expression": rng.choice(_EXPRESSIONS), "message": "m"}, {"message": "m"}, {}) for _ in "ab"
        ]
        jwt["userValidationRules"] = rules
    elif change == 13:
        mappings["username"] = {"expression": "claims.email"}
        jwt["claimValidationRules"] = [
            {
                "expression": pick(
                    rng,
                    "claims.?email_verified.orValue(true)",
                    "has(claims.email_verified)",
                    "claims['email_verified'] == true",
                    "claims.email_verified == true",
                    "true",
                )
            }
        ]
    else:
        set_somewhere(rng, jwt, rng.choice(_ODD))


def _prefixed(rng: random.Random, text: str) -> Any:
    return pick(
        rng,
        {"expression": text},
        {"expression": text},
        {"expression": text, "prefix": "x"},
        {"expression": text, "prefix": ""},
        {"claim": "a", "expression": text},
        {"claim": "a"},
        {"claim": "a", "prefix": None},
        {"prefix": "x"},
        {"claim": "", "prefix": ""},
        {},
        None,
    )


def _rule(rng: random.Random) -> Any:
    return pick(
        rng,
        {"expression": rng.choice(_EXPRESSIONS)},
        {"expression": rng.choice(_EXPRESSIONS), "message": "m"},
        {"expression": "true", "requiredValue": "x"},
        {"expression": "true", "claim": "x"},
        {"claim": rng.choice("ab"), "requiredValue": "x"},
        {"claim": rng.choice("ab"), "message": "m"},
        {"requiredValue": "x"},
        {},
    )


_BAD_PEM: Final = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def authentication_configurations(rng: random.Random, folder: Path) -> Case:
    authority = (folder / "ca.crt").read_text()
    jwts = [_jwt(rng) for _ in range(rng.randrange(1, 3))]
    for _ in range(rng.randrange(1, 4)):
        _broken_jwt(rng, rng.choice(jwts), authority)
    document: dict[str, Any] = {
        "apiVersion": f"apiserver.config.k8s.io/{pick(rng, 'v1', 'v1', 'v1beta1', 'v1alpha1')}",
        "kind": "AuthenticationConfiguration",
        "jwt": jwts,
    }
    flags = ["--authentication-config={folder}/config.yaml"]
    if rng.random() < 0.2:
        conditions = pick(rng, [], [{"path": "/livez"}], [{"path": ""}], [{}], [{"path": "x"}, {"path": "x"}], None)
        document["anonymous"] = pick(
            rng, {"enabled": True, "conditions": conditions}, {"conditions": conditions}, {}, {"enabled": 1}
        )
        flags += pick(rng, [], ["--anonymous-auth=true"], ["--anonymous-auth=false"])
    if rng.random() < 0.05:
        set_somewhere(rng, document, rng.choice(_ODD))
    if rng.random() < 0.05:
        flags.append(pick(rng, "--oidc-issuer-url=https://x", "--oidc-username-claim=x", "--oidc-required-claim=a=b"))
    text = json.dumps(document) if rng.random() < 0.3 else yaml.safe_dump(document, allow_unicode=True)
    if rng.random() < 0.1:
        text = _spoilt_text(rng, text)
    return flags, {"config.yaml": text}


def _spoilt_text(rng: random.Random, text: str) -> str:
    """Returns a text that isn't a valid document of its kind."""
    place = rng.randrange(len(text))
    return str(
        pick(
            rng,
            text[:place],
            text[:place] + rng.choice("{}[]:,\"'\t\n-#&*!%@`\x00") + text[place:],
            "",
            "\n",
            "---\n" + text,
            text + "\n---\n" + text,
            "\ufeff" + text,
            text.replace("kind: AuthenticationConfiguration", "kind: Other"),
            text.replace("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v2"),
            text.replace("apiVersion", "apiversion"),
            text + "\njwt: []\n",
            "x",
            "[]",
            "null",
            "5",
        )
    )


def oidc_flags(rng: random.Random, folder: Path) -> Case:
    flags = [f"--oidc-issuer-url={pick(rng, 'https://issuer', 'https://issuer', rng.choice(_URLS))}"]
    if rng.random() < 0.9:
        flags.append("--oidc-client-id=app")
    possible = [
        *(f"--oidc-username-claim={name}" for name in ("email", "", "a.b", "sub")),
        *(f"--oidc-username-prefix={name}" for name in ("-", "", "x:")),
        *(f"--oidc-groups-claim={name}" for name in ("groups", "")),
        *(f"--oidc-groups-prefix={name}" for name in ("-", "", "x:")),
        *(
            f"--oidc-signing-algs={name}"
            for name in (
                "RS256",
                "ES256,RS256",
                "none",
                "HS256",
                "",
                "RS256,",
                "rs256",
                "EdDSA",
                " RS256",
                '"RS256',
                'a"b',
            )
        ),
        *(f"--oidc-required-claim={pair}" for pair in ("a=b", "a=b=c", "a", "=b", "", "a=", "a=b,c=d", " a = b ")),
        *(
            f"--oidc-ca-file={name}"
            for name in ("{folder}/ca.crt", "/no/file", "{folder}/bad.pem", "", "{folder}", "{folder}/first.key")
        ),
        f"--oidc-client-id={pick(rng, '', 'app')}",
        "--oidc-issuer-url=",
    ]
    flags += rng.sample(possible, rng.randrange(0, 4))
    if rng.random() < 0.1:
        flags = rng.sample(possible, 1)
    return flags, {"bad.pem": _BAD_PEM}


def service_account_flags(rng: random.Random, folder: Path) -> Case:
    files = {
        "bad.pem": _BAD_PEM,
        "empty.pem": "",
        "text.pem": "no key",
        "both.pem": (folder / "first.pub").read_text() + (folder / "second.pub").read_text(),
        "spoilt.pem": (folder / "first.pub").read_text().replace("A", "B"),
        "encrypted.pem": _ENCRYPTED,
        "mixed.pem": "comment\n" + (folder / "first.key").read_text() + "trailing",
        "curve.pem": _CURVE,
        "ed25519.pem": _ED25519,
        "ed25519.key": _ED25519_KEY,
    }
    names = [*(f"{{folder}}/{name}" for name in files), "/no/file", "", "{folder}", "{folder}/ca.crt"]
    names += [f"{{folder}}/{name}" for name in ("first.pub", "second.pub", "third.key", "first.key", "second.key")]
    flags = [f"--service-account-issuer={pick(rng, _ISSUER, _ISSUER, rng.choice(_URLS))}"]
    flags.append(
        f"--service-account-key-file={pick(rng, '{folder}/first.pub', '{folder}/first.pub', rng.choice(names))}"
    )
    signing = pick(rng, "{folder}/first.key", "{folder}/first.key", rng.choice(names))
    flags.append(f"--service-account-signing-key-file={signing}")
    possible = [
        f"--service-account-issuer={rng.choice(_URLS)}",
        f"--service-account-key-file={rng.choice(names)}",
        *(
            f"--service-account-max-token-expiration={text}"
            for text in ("1h", "59m", "0", "-1h", "1", "x", "1193047h", "1193046h28m15s", "1193046h28m16s")
        ),
        *(f"--service-account-jwks-uri={text}" for text in _URLS),
        *(f"--service-account-lookup={text}" for text in ("true", "false", "no")),
        *(f"--service-account-extend-token-expiration={text}" for text in ("true", "false", "yes", "T")),
        *(f"--api-audiences={text}" for text in ("", "a,b", "a,,b", '"a,b"', '"a')),
    ]
    flags += rng.sample(possible, rng.randrange(0, 3))
    if rng.random() < 0.1:
        flags.pop(rng.randrange(3))
    rng.shuffle(flags)
    return flags, files


def kubeconfigs(rng: random.Random, folder: Path) -> Case:
    """Returns a kubeconfig of the token webhook or of the authorization webhook."""
    authority, pair = (folder / "ca.crt").read_text(), (folder / "serving.pem").read_text()
    files = {"bad.pem": _BAD_PEM, "token": "abc\n", "pair.pem": pair, "empty": ""}
    names = ["ca.crt", "{folder}/ca.crt", "/no/file", "bad.pem", "pair.pem", "first.key", "", "empty", "."]
    encoded = [base64.b64encode(text.encode()).decode() for text in (authority, pair, _BAD_PEM, "x", "")] + ["%", "AA"]
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
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true", "interactiveMode": "Never"}
    changes: list[Callable[[], Any]] = [
        lambda: cluster.update(server=pick(rng, *_URLS, "127.0.0.1:1", "127.0.0.1", "http://127.0.0.1:1", "unix:///x")),
        lambda: cluster.update({"certificate-authority": rng.choice(names)}),
        lambda: cluster.update({"certificate-authority-data": rng.choice(encoded)}),
        lambda: cluster.update({"insecure-skip-tls-verify": pick(rng, True, False, "x", 1)}),
        lambda: cluster.update({"tls-server-name": pick(rng, "x", "", "a b")}),
        lambda: cluster.update(
            {"proxy-url": pick(rng, "http://proxy", "ftp://x", "x", "socks5://x", "://", "http://[", "")}
        ),
        lambda: cluster.update({"disable-compression": True}),
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
        lambda: set_somewhere(rng, config, rng.choice(_ODD)),
    ]
    for change in rng.sample(changes, rng.randrange(1, 4)):
        with suppress(AttributeError, KeyError):
            change()
    text = json.dumps(config) if rng.random() < 0.3 else yaml.safe_dump(config, allow_unicode=True)
    if rng.random() < 0.05:
        text = _spoilt_text(rng, text)
    files["hook.kubeconfig"] = text
    path = pick(rng, *["{folder}/hook.kubeconfig"] * 20, "/no/file", "{folder}")
    flags = [f"--authentication-token-webhook-config-file={path}"]
    if rng.random() < 0.1:
        flags.append(f"--authentication-token-webhook-version={pick(rng, 'v1', 'v1beta1', 'v2', '', 'V1')}")
    if rng.random() < 0.1:
        flags.append(f"--authentication-token-webhook-cache-ttl={pick(rng, '0', '1s', '-1s', 'x', '5')}")
    if rng.random() < 0.2:
        flags[0] = f"--authorization-webhook-config-file={path}"
        flags.append("--authorization-mode=Webhook")
    return flags, files


def token_and_certificate_files(rng: random.Random, folder: Path) -> Case:
    rows = [
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
    authority, other = (folder / "ca.crt").read_text(), (folder / "other.crt").read_text()
    files = {
        "tokens.csv": pick(rng, "\n", "\r\n").join(rng.choice(rows) for _ in range(rng.randrange(1, 5))),
        "bundle.pem": pick(
            rng,
            authority,
            other,
            authority + other,
            "",
            "x",
            _BAD_PEM,
            authority + _BAD_PEM,
            authority[:200],
            "x\n" + authority + "y",
        ),
        "proxy.pem": pick(rng, authority, other, other + authority, "", _BAD_PEM),
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
            [
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
            ],
            rng.randrange(0, 4),
        )
    elif rng.random() < 0.3:
        flags.append("--requestheader-username-headers=X-Remote-User")
    return flags, files


_ENCRYPTED: Final = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n"
    "AAAAAAAAAAAAAAAAAAAAAA==\n-----END RSA PRIVATE KEY-----\n"
)
_CURVE: Final = (
    "-----BEGIN PUBLIC KEY-----\n"
    "ME4wEAYHKoZIzj0CAQYFK4EEACEDOgAEtwz1ZOV8kbp0gkG7XkQfVQ3XJ8k6qZ0J\nAAAA\n-----END PUBLIC KEY-----\n"
)
_ED25519: Final = (
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
)
_ED25519_KEY: Final = (
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"
)

TOPICS: Final[Mapping[str, Callable[[random.Random, Path], Case]]] = {
    "configurations": authentication_configurations,
    "oidc": oidc_flags,
    "service-accounts": service_account_flags,
    "kubeconfigs": kubeconfigs,
    "files": token_and_certificate_files,
    "authorization": lambda rng, folder: random_authorization_files.configuration(rng),
    "policies": lambda rng, folder: random_authorization_files.policies(rng),
}


def _completed(flags: list[str], topic: str) -> list[str]:
    """With what every kube-apiserver must be given."""
    needed = (
        []
        if topic == "service-accounts"
        else [
            f"--service-account-issuer={_ISSUER}",
            "--service-account-key-file={folder}/first.pub",
            "--service-account-signing-key-file={folder}/first.key",
        ]
    )
    said = any(flag.startswith(("--authorization-mode", "--authorization-config")) for flag in flags)
    mode = [] if said else ["--authorization-mode=RBAC"]
    return [*needed, *mode, *flags]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--port", type=int, default=8201)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--topic", choices=list(TOPICS))
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        credentials.make(folder)
        programs = Programs(folder, arguments.oracle, arguments.server, arguments.port)
        for number in range(arguments.seed, arguments.seed + arguments.count):
            rng = random.Random(number)
            topic = arguments.topic or rng.choice(list(TOPICS))
            flags, files = TOPICS[topic](rng, folder)
            for file, text in deepcopy(files).items():
                (folder / file).write_text(text.replace("{folder}", name))
            placed = [flag.replace("{folder}", name) for flag in _completed(flags, topic)]
            oracle, server = (text.replace(name, "FOLDER") for text in programs.compare(placed))
            counts[f"{topic} {'equal' if oracle == server else 'different'}"] += 1
            counts["refused" if oracle != _STARTED else _STARTED] += 1
            kind = re.sub(r'"[^"]*"', '""', f"{oracle} | {server}")[:300]
            if oracle != server and kind not in seen:
                seen.add(kind)
                print(
                    f"--- seed {number} {topic}: {' '.join(flags)}\n  oracle: {oracle}\n  server: {server}", flush=True
                )
                if arguments.show:
                    print(
                        "\n".join(f"  {file}:\n{text}" for file, text in files.items() if "pem" not in file), flush=True
                    )
    print(json.dumps(counts, indent=1, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
