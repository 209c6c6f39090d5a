"""Random credentials, most of them attacks, presented to a real server and to another one: prints each kind of difference once.

    python -m conformance.compare.access.authentication --files FOLDER
    python -m conformance.compare.access.authentication --oracle URL --server URL --folder FOLDER [--seed N] [--count N] [--topic NAME]

The first runs an OpenID provider and a token webhook on loopback, and prints the flags that both servers are to be started with, besides
`--token-auth-file` with the administrator's token, `reference-admin`. The second asks both who a request comes from: tokens (spoilt,
forged, of several issuers and of accounts that are gone), client certificates and chains, the headers of a front proxy and of
impersonation, and every way of writing a header. A TokenReview also has the reasons for a rejection.
"""

import argparse
import base64
import json
import random
import re
import signal
import socket
import ssl
import string
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier
from jwt.algorithms import get_default_algorithms

from conformance.players import credentials
from conformance.players.credentials import KEYS, Credentials

_ADMIN: Final = "reference-admin"
_ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
_REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
FLAGS: Final = (
    "--anonymous-auth=true",
    "--authentication-config={folder}/authentication-all.yaml",
    "--authentication-token-webhook-config-file={folder}/review.kubeconfig",
    "--authentication-token-webhook-version=v1",
    "--client-ca-file={folder}/bundle.crt",
    "--enable-bootstrap-token-auth",
    "--requestheader-client-ca-file={folder}/proxy.crt",
    "--requestheader-allowed-names=front,front proxy",
    "--requestheader-username-headers=X-Remote-User,X-Other-User",
    "--requestheader-group-headers=X-Remote-Group,X-Other-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-,X-Other-",
    "--requestheader-uid-headers=X-Remote-Uid",
    f"--service-account-issuer={_ISSUER}",
    "--service-account-issuer=https://second",
    "--service-account-signing-key-file={folder}/first.key",
    "--service-account-key-file={folder}/first.pub",
    "--service-account-key-file={folder}/second.pub",
    "--service-account-key-file={folder}/third.pub",
)


@dataclass
class Presented:
    """The credentials of a request. `{…}` in a token is replaced by a value that differs between the servers."""

    token: "Token | str | None" = None
    headers: list[str] = field(default_factory=list)
    certificate: Path | None = None
    path: str = _REVIEWS
    method: str = "POST"
    audiences: Sequence[str] = ()


@dataclass
class Token:
    header: str
    claims: str
    key: str
    algorithm: str
    spoil: Callable[[list[str]], str] = ".".join

    def signed(self, folder: Path, uids: Mapping[str, str]) -> str:
        claims = self.claims
        for name, uid in uids.items():
            claims = claims.replace("{" + name + "}", uid)
        parts = [
            _segment(self.header.encode("utf-8", "surrogatepass")),
            _segment(claims.encode("utf-8", "surrogatepass")),
        ]
        text = ".".join(parts).encode()
        if self.algorithm == "HS256":
            secret = (folder / f"{self.key}.pub").read_bytes()
            import hashlib
            import hmac

            signature = hmac.new(secret, text, hashlib.sha256).digest()
        elif self.algorithm == "none":
            signature = b""
        else:
            key = credentials.key_of(folder, self.key)
            signature = get_default_algorithms()[self.algorithm].sign(text, key)
        return self.spoil([*parts, _segment(signature)])


def _segment(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Server:
    """Sends requests to a server, each over a new connection."""

    def __init__(self, url: str, folder: Path) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.folder, self.host, self.port = folder, parts.hostname, parts.port or 443
        self.uids: dict[str, str] = {}

    def context(self, certificate: Path | None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context

    def ask(self, presented: Presented) -> str:
        token = (
            presented.token.signed(self.folder, self.uids) if isinstance(presented.token, Token) else presented.token
        )
        lines = list(presented.headers)
        if token is not None:
            lines.insert(0, f"Authorization: Bearer {token}")
        body = json.dumps(_REVIEW) if presented.method == "POST" else ""
        return self.send(presented.method, presented.path, lines, body, presented.certificate)

    def review(self, presented: Presented) -> str:
        """Returns what a TokenReview says about the token."""
        assert presented.token is not None
        token = (
            presented.token.signed(self.folder, self.uids) if isinstance(presented.token, Token) else presented.token
        )
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": list(presented.audiences)},
        }
        text = self.send("POST", _TOKEN_REVIEWS, [f"Authorization: Bearer {_ADMIN}"], json.dumps(review), None)
        status, _, answer = text.partition(" ")
        try:
            found = json.loads(answer)
        except ValueError:
            return text
        return f"{status} {json.dumps(found.get('status', found), sort_keys=True)}"

    def send(self, method: str, path: str, headers: Sequence[str], body: str, certificate: Path | None) -> str:
        data = body.encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: x",
            *headers,
            "Content-Type: application/json",
            f"Content-Length: {len(data)}",
        ]
        if not any(line.lower().startswith("connection:") for line in headers):
            lines.append("Connection: close")
        request = "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + data
        try:
            with (
                socket.create_connection((self.host, self.port), timeout=60) as plain,
                self.context(certificate).wrap_socket(plain, server_hostname="127.0.0.1") as secure,
            ):
                secure.sendall(request)
                return self._answer(secure)
        except ssl.SSLError as error:
            return f"TLS: {error.reason}"
        except OSError as error:
            return f"connection: {type(error).__name__}"

    def _answer(self, secure: ssl.SSLSocket) -> str:
        received = b""
        while True:
            try:
                data = secure.recv(65536)
            except (ssl.SSLError, OSError):
                data = b""
            received += data
            head, end, body = received.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if not data or (end and length and len(body) >= int(length[1])) or (end and b" 101 " in head[:15]):
                break
        if re.search(rb"(?i)transfer-encoding: *chunked", head):
            body = b"".join(re.split(rb"(?:^|\r\n)[0-9a-f]+\r\n", body))
        warned = [
            line.decode().partition(" ")[2] for line in head.split(b"\r\n") if line.lower().startswith(b"warning:")
        ]
        return f"{head[9:12].decode()} {body.decode('utf-8', 'replace').strip()} {warned or ''}".strip()

    def make(self, path: str, obj: Mapping[str, Any]) -> dict[str, Any]:
        text = self.send("POST", path, [f"Authorization: Bearer {_ADMIN}"], json.dumps(obj), None)
        if text.startswith("409"):
            text = self.send("GET", f"{path}/{obj['metadata']['name']}", [f"Authorization: Bearer {_ADMIN}"], "", None)
        found: dict[str, Any] = json.loads(text.partition(" ")[2])
        return found

    def prepare(self) -> None:
        """Creates the objects that tokens refer to."""
        core = "/api/v1/namespaces"
        self.make(core, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "da"}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
        pod = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "robot", "nodeName": "n1"}
        made = {
            "account": self.make(f"{core}/da/serviceaccounts", account),
            "secret": self.make(
                f"{core}/da/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
            ),
            "node": self.make("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}),
            "pod": self.make(
                f"{core}/da/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod}
            ),
        }
        self.uids = {name: found["metadata"]["uid"] for name, found in made.items()}
        encoded = {
            key: base64.b64encode(value.encode()).decode()
            for key, value in {
                "token-id": "abcdef",
                "token-secret": "0123456789abcdef",
                "usage-bootstrap-authentication": "true",
                "auth-extra-groups": "system:bootstrappers:x",
            }.items()
        }
        meta = {"name": "bootstrap-token-abcdef"}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": meta,
            "type": "bootstrap.kubernetes.io/token",
            "data": encoded,
        }
        self.make(f"{core}/kube-system/secrets", secret)
        group = "rbac.authorization.k8s.io"
        for name, rules in _ROLES.items():
            role = {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": f"da-{name}"},
                "rules": rules,
            }
            self.make(f"/apis/{group}/v1/clusterroles", role)
            binding = {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"da-{name}"},
                "subjects": [{"kind": "User", "apiGroup": group, "name": f"da-{name}"}],
                "roleRef": {"kind": "ClusterRole", "apiGroup": group, "name": f"da-{name}"},
            }
            self.make(f"/apis/{group}/v1/clusterrolebindings", binding)


def _rule(verbs: Sequence[str], resources: Sequence[str], group: str = "", names: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "resources": list(resources),
        "verbs": list(verbs),
        **({"resourceNames": list(names)} if names else {}),
    }


_AUTHENTICATION: Final = "authentication.k8s.io"
# Users with certificates of their own, who may impersonate a part of the others.
_ROLES: Final = {
    "users": [_rule(["impersonate"], ["users"])],
    "jane": [_rule(["impersonate"], ["users"], names=["jane"]), _rule(["impersonate"], ["groups"], names=["dev"])],
    "accounts": [_rule(["impersonate"], ["serviceaccounts"])],
    "extra": [
        _rule(["impersonate"], ["users", "groups"]),
        _rule(["impersonate"], ["userextras/a"], _AUTHENTICATION),
        _rule(["impersonate"], ["uids"], _AUTHENTICATION, ["7"]),
    ],
    "constrained": [
        _rule(["impersonate:user-info"], ["users"], _AUTHENTICATION),
        _rule(["impersonate-on:user-info:create"], ["selfsubjectreviews"], _AUTHENTICATION),
    ],
    "constrained-account": [
        _rule(["impersonate:serviceaccount"], ["serviceaccounts"], _AUTHENTICATION),
        _rule(["impersonate-on:serviceaccount:create"], ["selfsubjectreviews"], _AUTHENTICATION),
    ],
    "constrained-node": [
        _rule(["impersonate:arbitrary-node"], ["nodes"], _AUTHENTICATION),
        _rule(["impersonate-on:arbitrary-node:create"], ["selfsubjectreviews"], _AUTHENTICATION),
    ],
    "half": [_rule(["impersonate:user-info"], ["users", "groups"], _AUTHENTICATION)],
}


# --------------------------------------------------------------------- tokens

_DIALECT: Final[tuple[Any, ...]] = (
    None,
    "",
    "x",
    0,
    1,
    -1,
    1.5,
    True,
    False,
    [],
    {},
    [None],
    ["x"],
    [1],
    {"a": 1},
    "\u0000",
    "ü",
)


def _times(rng: random.Random) -> Any:
    now = int(time.time())
    text = rng.choice(
        [
            str(now + 600),
            str(now - 600),
            str(now + 5000000),
            str(now - 120),
            str(now - 30),
            str(now + 30),
            str(now + 120),
            f"{now + 600}.5",
            f"{now + 600}e0",
            f"{now - 600}.0",
            "0",
            "-1",
            "-0",
            "1e400",
            "-1e400",
            "1e30",
            "-1e30",
            "1e19",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775809",
            "1e-5",
            "null",
            "true",
            "[]",
            "{}",
            f'"{now + 600}"',
            f'"{now - 600}"',
            '""',
            '"x"',
            '"1e400"',
            '"NaN"',
            '"Infinity"',
            '" 1"',
            '"0x7fffffffff"',
            f'"+{now + 600}"',
            '"9_999_999_999"',
            '"99999999999999999999"',
            "012",
            "1.",
            "NaN",
            "1E10",
            "253402300800",
            "99999999999",
        ]
    )
    return _Raw(text)


class _Raw(str):
    """JSON as it stands."""

    __slots__ = ()


def _json(value: Any) -> str:
    if isinstance(value, _Raw):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_json(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def _account_claims(rng: random.Random) -> dict[str, Any]:
    now = int(time.time())
    private: dict[str, Any] = {"namespace": "da", "serviceaccount": {"name": "robot", "uid": "{account}"}}
    bound = rng.choice(["", "", "pod", "secret", "node", "pod node"]).split()
    for name in bound:
        private[name] = {"name": {"pod": "p", "secret": "s", "node": "n1"}[name], "uid": "{" + name + "}"}
    if rng.random() < 0.2:
        private["warnafter"] = rng.choice([now - 10, now + 600, "x", None])
    return {
        "iss": rng.choice([_ISSUER, _ISSUER, "https://second"]),
        "aud": [rng.choice([_ISSUER, "https://second"])],
        "exp": now + 600,
        "iat": now - 5,
        "nbf": now - 5,
        "jti": "j",
        "sub": "system:serviceaccount:da:robot",
        "kubernetes.io": private,
    }


def _legacy_claims(rng: random.Random) -> dict[str, Any]:
    claim = "kubernetes.io/serviceaccount/"
    return {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:da:robot",
        f"{claim}namespace": "da",
        f"{claim}secret.name": rng.choice(["s", "nope"]),
        f"{claim}service-account.name": "robot",
        f"{claim}service-account.uid": "{account}",
    }


def _oidc_claims(rng: random.Random, url: str) -> dict[str, Any]:
    issuer = rng.choice(["claims", "email", "expressions", "expressions", "nobody"])
    now = int(time.time())
    return {
        "iss": f"{url}/{issuer}",
        "aud": rng.choice(["app", ["app"], ["other"], ["x", "app"]]),
        "exp": now + 600,
        "iat": now,
        "sub": rng.choice(["jane", "system:admin", "", "ü"]),
        "email": rng.choice(["jane@x", "", 5, None]),
        **rng.choice([{}, {"email_verified": rng.choice([True, False, "true", None, 1])}]),
        **rng.choice([{}, {"groups": rng.choice([["a", "b"], "a", [], [""], None, [1], {}, ["a", None], 5, "a,b"])}]),
        **rng.choice([{}, {"uid": rng.choice(["7", "", 5, None, ["x"]])}]),
        **rng.choice([{}, {"a.b": rng.choice(["x", ["y"], "", 5])}]),
        **rng.choice([{}, {"list": rng.choice([["x", "y"], [], "z", 5, None, [[]]])}]),
        **rng.choice([{}, {"hd": rng.choice(["example.com", "other", 5, None])}]),
        **rng.choice([{}, {"jti": rng.choice(["j", "", 5, None])}]),
    }


_CLAIMS: Final = (
    "iss",
    "aud",
    "exp",
    "iat",
    "nbf",
    "sub",
    "jti",
    "kubernetes.io",
    "nonce",
    "at_hash",
    "_claim_names",
    "_claim_sources",
)


def _changed_claims(rng: random.Random, claims: dict[str, Any], url: str) -> None:
    change = rng.randrange(9)
    name = rng.choice([*_CLAIMS, *claims])
    if change in (0, 1):
        claims[rng.choice(["exp", "nbf", "iat"])] = _times(rng)
    elif change == 2:
        claims.pop(name, None)
    elif change == 3:
        claims[name] = rng.choice(_DIALECT)
    elif change == 4:
        issuers = [
            _ISSUER,
            _ISSUER + "/",
            _ISSUER.upper(),
            "https://second",
            "https://other",
            f"{url}/claims",
            f"{url}/claims/",
            f"{url}/email",
            "",
            None,
        ]
        claims["iss"] = rng.choice(issuers)
    elif change == 5:
        claims["aud"] = rng.choice(
            [_ISSUER, [_ISSUER], [], [""], "", None, ["x"], "app", ["app", 5], 5, {}, ["a"] * 500, "APP", ["other"]]
        )
    elif change == 6:
        private = claims.get("kubernetes.io")
        if isinstance(private, dict):
            place = rng.choice([private, *(value for value in private.values() if isinstance(value, dict))])
            place[rng.choice([*place, "name", "uid", "pod", "node", "secret"])] = rng.choice(
                [*_DIALECT, {"name": "p", "uid": "wrong"}, "../../x", "a/b", "nope"]
            )
        else:
            claims[name] = rng.choice(["../x", "a" * 300, "system:masters"])
    elif change == 7:
        claims[rng.choice(["ISS", "Sub", "EXP", "Aud", "KUBERNETES.IO", "iſs"])] = rng.choice(
            [_ISSUER, "x", 0, ["system:masters"]]
        )
    else:
        claims["sub"] = rng.choice(["system:serviceaccount:kube-system:admin", "admin", "", 5, None])


def _header(rng: random.Random, key: str, folder: Path) -> tuple[dict[str, Any], str]:
    algorithm = KEYS[key]
    header: dict[str, Any] = {"alg": algorithm, "kid": credentials.key_id(credentials.key_of(folder, key))}
    if rng.random() < 0.55:
        return header, algorithm
    change = rng.randrange(12)
    if change == 0:
        algorithm = rng.choice(["none", "HS256"])
        header["alg"] = algorithm
    elif change == 1:
        header["alg"] = rng.choice(
            [
                "none",
                "None",
                "nOnE",
                "",
                "HS256",
                "HS512",
                "rs256",
                "RS256",
                "ES256",
                "PS256",
                "EdDSA",
                "ES256K",
                "dir",
                5,
                None,
                ["RS256"],
            ]
        )
    elif change == 2:
        header["kid"] = rng.choice(
            [
                "",
                "x",
                "../../../etc/passwd",
                "' OR 1=1 --",
                "http://127.0.0.1:1/",
                "/dev/null",
                5,
                None,
                ["x"],
                "\u0000",
                "a" * 5000,
            ]
        )
    elif change == 3:
        header.pop("kid")
    elif change == 4:
        header.pop("alg")
    elif change == 5:
        header["crit"] = rng.choice([["exp"], ["b64"], [], "exp", ["x"], [5], None, {}])
    elif change == 6:
        header["b64"] = rng.choice([False, True, "false", None, 0])
        if rng.random() < 0.5:
            header["crit"] = ["b64"]
    elif change == 7:
        public = get_default_algorithms()[KEYS["stranger"]].to_jwk(
            credentials.key_of(folder, "stranger").public_key(), as_dict=True
        )
        header["jwk"] = rng.choice(
            [public, {}, None, "x", {"kty": "oct", "k": "AA"}, {**public, "x": "AA"}, {"kty": "RSA"}]
        )
    elif change == 8:
        header[rng.choice(["jku", "x5u"])] = rng.choice(["https://127.0.0.1:1/keys", "file:///etc/passwd", 5, None])
    elif change == 9:
        header["x5c"] = rng.choice([[], ["AA=="], "x", None, [5]])
    elif change == 10:
        header.update(
            rng.choice(
                [
                    {"typ": "JWT"},
                    {"typ": 5},
                    {"cty": "JWT"},
                    {"nonce": "x"},
                    {"nonce": 5},
                    {"zip": "DEF"},
                    {"enc": "A128GCM"},
                    {"x5t": "x"},
                    {"ALG": "none"},
                    {"KID": "x"},
                    {"x5t#S256": 5},
                ]
            )
        )
    else:
        algorithm = "RS512" if algorithm == "RS256" else algorithm
        algorithm = rng.choice(["PS256", "RS384", "RS512", "PS512"]) if KEYS[key] == "RS256" else algorithm
        header["alg"] = algorithm
    return header, algorithm


def _spoiler(rng: random.Random) -> Callable[[list[str]], str]:
    if rng.random() < 0.7:
        return ".".join
    place, letter, change = rng.random(), rng.choice(string.ascii_letters + "+/=-_ .%\u00fc"), rng.randrange(15)

    def spoil(parts: list[str]) -> str:
        text = ".".join(parts)
        at = int(place * len(text))
        return [
            text[:at] + letter + text[at + 1 :],
            text[:at] + letter + text[at:],
            text[:at],
            ".".join(parts[:2]),
            ".".join(parts[:2]) + ".",
            text + ".",
            text + "=",
            ".".join(part + "=" * (-len(part) % 4) for part in parts),
            ".".join([parts[0], parts[1], parts[2][:-1]]),
            ".".join([*parts, parts[2]]),
            ".".join([parts[0], parts[1], _segment(b"\0" * 64)]),
            ".".join([parts[0], "", parts[2]]),
            text + "A" * 10000,
            ".".join([parts[0], _segment(text.encode()), parts[2]]),
            text.swapcase(),
        ][change]

    return spoil


def _with_doubles(rng: random.Random, text: str) -> str:
    """Keys twice, and JSON that only some parsers take."""
    change = rng.randrange(14)
    inside = text[1:]
    return [
        '{"sub":"system:admin",' + inside,
        text[:-1] + ',"sub":"system:admin"}',
        text[:-1] + ',"iss":"https://other"}',
        '{"exp":99999999999,' + inside,
        " " + text + "\n",
        text + "x",
        "[" + text + "]",
        '"' + inside,
        text.replace(",", ",\t", 1),
        text[:-1] + ",}",
        text[:-1] + ',"x":' + "[" * 200 + "]" * 200 + "}",
        "\ufeff" + text,
        text[:-1] + ',"x":"\\ud800"}',
        text[:-1] + ',"kubernetes.io":{}}',
    ][change]


def tokens(rng: random.Random, world: "World") -> Presented:
    kind = rng.randrange(10)
    if kind == 0:
        return Presented(token=_plain_token(rng), audiences=_audiences(rng))
    if kind < 5:
        claims, key = _account_claims(rng), rng.choice(["first", "second", "third", "first", "stranger", "issuer"])
    elif kind == 5:
        claims, key = _legacy_claims(rng), rng.choice(["first", "second", "stranger"])
    else:
        claims, key = (
            _oidc_claims(rng, world.url),
            rng.choice(["issuer", "issuer", "issuer2", "issuer2", "stranger", "first"]),
        )
    for _ in range(rng.choice([0, 0, 1, 1, 1, 2])):
        _changed_claims(rng, claims, world.url)
    header, algorithm = _header(rng, key, world.folder)
    text, head = _json(claims), _json(header)
    if rng.random() < 0.1:
        text = _with_doubles(rng, text)
    if rng.random() < 0.05:
        head = rng.choice(
            [
                head[:-1] + ',"alg":"none"}',
                '{"alg":"none",' + head[1:],
                head + "x",
                "[]",
                "null",
                " " + head,
                head[:-1] + ',"kid":"x"}',
            ]
        )
    return Presented(token=Token(head, text, key, algorithm, _spoiler(rng)), audiences=_audiences(rng))


def _plain_token(rng: random.Random) -> str:
    return rng.choice(
        [
            _ADMIN,
            _ADMIN + "x",
            _ADMIN.upper(),
            "abcdef.0123456789abcdef",
            "abcdef.0123456789abcdeg",
            "abcdeg.0123456789abcdef",
            "ABCDEF.0123456789abcdef",
            "abcdef.0123456789abcdef ",
            "abcdef.0123456789abcde",
            "hook-jane",
            "hook-refused",
            "hook-elsewhere",
            "hook-second",
            "hook-nobody",
            "hook-odd",
            "..",
            ".",
            "a.b.c",
            "a.b.c.d.e",
            "e30.e30.",
            "e30.e30.e30",
            ".e30.",
            "eyJhbGciOiJub25lIn0.e30.",
            "x" * 70000,
            "." * 5000,
            "%20",
            "ü",
        ]
    )


def _audiences(rng: random.Random) -> Sequence[str]:
    return rng.choice(
        [(), (), (_ISSUER,), ("https://second",), ("app",), ("x",), ("x", _ISSUER), ("",), ("https://second", _ISSUER)]
    )


# --------------------------------------------------------------------- certificates


@dataclass
class World:
    """The files and servers that all cases share. Certificates are created on first use."""

    folder: Path
    url: str


def _name(rng: random.Random) -> x509.Name:
    def one(oid: ObjectIdentifier, text: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return x509.NameAttribute(oid, text, _validate=False)

    uid = ObjectIdentifier("1.3.6.1.4.1.57683.2")
    parts = rng.choice(
        [
            [[one(NameOID.COMMON_NAME, "jane")]],
            [[one(NameOID.ORGANIZATION_NAME, "dev")], [one(NameOID.COMMON_NAME, "jane")]],
            [
                [one(NameOID.COMMON_NAME, "jane")],
                [one(NameOID.ORGANIZATION_NAME, "dev")],
                [one(NameOID.ORGANIZATION_NAME, "ops")],
            ],
            [[one(NameOID.ORGANIZATION_NAME, f"g{i}")] for i in range(60)] + [[one(NameOID.COMMON_NAME, "many")]],
            [[one(NameOID.ORGANIZATION_NAME, "dev"), one(NameOID.COMMON_NAME, "multi")]],
            [[one(NameOID.COMMON_NAME, "a")], [one(NameOID.COMMON_NAME, "b")]],
            [[one(NameOID.COMMON_NAME, "a"), one(NameOID.COMMON_NAME, "b")]],
            [[one(NameOID.ORGANIZATION_NAME, "system:masters")]],
            [[one(NameOID.COMMON_NAME, "jäne ☃")], [one(NameOID.ORGANIZATION_NAME, "gröup")]],
            [[one(NameOID.COMMON_NAME, " jane ")]],
            [[one(NameOID.COMMON_NAME, "jane")], [one(uid, "7")]],
            [[one(NameOID.COMMON_NAME, "jane")], [one(uid, "7")], [one(uid, "8")]],
            [[one(NameOID.COMMON_NAME, "jane"), one(uid, "7")]],
            [[one(NameOID.COMMON_NAME, "jane")], [one(NameOID.ORGANIZATIONAL_UNIT_NAME, "unit")]],
            [[one(NameOID.COMMON_NAME, "a" * 200)]],
            [[one(NameOID.COMMON_NAME, "system:admin")], [one(NameOID.ORGANIZATION_NAME, "")]],
            [[one(NameOID.COMMON_NAME, "front")]],
            [[one(NameOID.COMMON_NAME, "front proxy")]],
            [[one(NameOID.COMMON_NAME, "FRONT")]],
            [[one(NameOID.COMMON_NAME, "a,CN=system:admin")]],
            [[one(NameOID.COMMON_NAME, "nul\0byte")]],
            [],
        ]
    )
    return x509.Name([x509.RelativeDistinguishedName(part) for part in parts])


def _key(rng: random.Random) -> Any:
    kind = rng.choice(["p256"] * 8 + ["p384", "p521", "rsa", "rsa1024", "ed25519"])
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind.startswith("rsa"):
        return rsa.generate_private_key(65537, 1024 if kind == "rsa1024" else 2048)
    curves: dict[str, type[ec.EllipticCurve]] = {
        "p256": ec.SECP256R1,
        "p384": ec.SECP384R1,
        "p521": ec.SECP521R1,
    }
    return ec.generate_private_key(curves[kind]())


def _digest(rng: random.Random, key: Any) -> Any:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    return rng.choice(
        [hashes.SHA256()] * 10 + [hashes.SHA384(), hashes.SHA512(), hashes.SHA224(), hashes.SHA1(), hashes.SHA3_256()]
    )


def _usages(rng: random.Random) -> list[ObjectIdentifier] | None:
    client, server = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
    return rng.choice(
        [[client]] * 8
        + [
            None,
            None,
            [server],
            [client, server],
            [ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE],
            [ExtendedKeyUsageOID.CODE_SIGNING],
            [ObjectIdentifier("1.2.3.4")],
        ]
    )


def _extensions(rng: random.Random, *, is_authority: bool) -> list[tuple[x509.ExtensionType, bool]]:
    basic = x509.BasicConstraints(is_authority, rng.choice([None, None, None, 0, 1]) if is_authority else None)
    found: list[tuple[x509.ExtensionType, bool]] = []
    if is_authority:
        found += rng.choice(
            [[(basic, True)]] * 8 + [[(basic, False)], [], [(x509.BasicConstraints(False, None), True)]]
        )
    elif rng.random() < 0.3:
        found.append((rng.choice([basic, x509.BasicConstraints(True, None)]), rng.random() < 0.5))
    if rng.random() < 0.3:
        found.append((_key_usage(rng), True))
    if rng.random() < 0.25:
        found.append(
            rng.choice(
                [
                    (x509.SubjectAlternativeName([x509.DNSName("good.example")]), False),
                    (x509.SubjectAlternativeName([x509.DNSName("bad.example")]), True),
                    (x509.SubjectAlternativeName([x509.RFC822Name("a@good.example")]), False),
                    (x509.SubjectAlternativeName([x509.UniformResourceIdentifier("spiffe://good.example/x")]), False),
                    (x509.SubjectAlternativeName([x509.UniformResourceIdentifier("https://1.2.3.4/x")]), False),
                    (x509.SubjectAlternativeName([x509.DNSName("*.good.example")]), False),
                    (x509.SubjectAlternativeName([x509.DNSName("")]), False),
                    (x509.SubjectAlternativeName([x509.DirectoryName(x509.Name([]))]), True),
                    (x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\5\0"), rng.random() < 0.5),
                    (x509.CertificatePolicies([x509.PolicyInformation(ObjectIdentifier("1.2.3"), None)]), True),
                    (x509.PolicyConstraints(rng.choice([0, 1]), None), True),
                    (x509.InhibitAnyPolicy(0), True),
                    (x509.OCSPNoCheck(), True),
                ]
            )
        )
    if is_authority and rng.random() < 0.25:
        constraints = rng.choice(
            [
                ([x509.DNSName("good.example")], None),
                (None, [x509.DNSName("good.example")]),
                ([x509.RFC822Name("good.example")], None),
                ([x509.UniformResourceIdentifier(".example")], None),
                ([x509.IPAddress(ip_network("10.0.0.0/8"))], None),
                ([x509.DirectoryName(x509.Name([]))], None),
                ([x509.DNSName("")], None),
                (None, [x509.DNSName("")]),
            ]
        )
        found.append((x509.NameConstraints(*constraints), rng.random() < 0.8))
    return found


def _key_usage(rng: random.Random) -> x509.KeyUsage:
    signs, certifies = rng.random() < 0.7, rng.random() < 0.7
    return x509.KeyUsage(signs, False, False, False, False, certifies, False, False, False)


def _dates(rng: random.Random) -> tuple[datetime, datetime]:
    now, day = datetime.now(UTC).replace(microsecond=0), timedelta(days=1)
    good = (now - day, now + day)
    odd = [
        (now - 2 * day, now - day),
        (now + day, now + 2 * day),
        (now - day, now + timedelta(hours=1)),
        (datetime(1960, 1, 1, tzinfo=UTC), datetime(2199, 1, 1, tzinfo=UTC)),
    ]
    return rng.choice([good] * 10 + odd)


def _issued(
    rng: random.Random,
    subject: x509.Name,
    issuer: x509.Certificate | None,
    issuer_key: Any,
    key: Any,
    *,
    is_authority: bool,
) -> x509.Certificate:
    begins, ends = (
        _dates(rng)
        if not is_authority or rng.random() < 0.3
        else (datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=1))
    )
    builder = x509.CertificateBuilder(
        issuer_name=issuer.subject if issuer is not None else subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=begins,
        not_valid_after=ends,
    )
    usages = (
        _usages(rng)
        if not is_authority
        else rng.choice([None] * 6 + [[ExtendedKeyUsageOID.CLIENT_AUTH], [ExtendedKeyUsageOID.SERVER_AUTH]])
    )
    if usages is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=rng.random() < 0.2)
    for extension, critical in _extensions(rng, is_authority=is_authority):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer_key, _digest(rng, issuer_key))


def _chain(rng: random.Random, world: World) -> Path | None:
    """A PEM file with a client's certificate, what it sends with it, and its key; None where it can't be made."""
    path = world.folder / "random-client.pem"
    authority = rng.choice(["ca", "ca", "ca", "ca", "proxy", "other", "narrow", "shallow"])
    issuer: x509.Certificate | None = x509.load_pem_x509_certificate((world.folder / f"{authority}.crt").read_bytes())
    issuer_key = credentials.key_of(world.folder, authority)
    between: list[x509.Certificate] = []
    try:
        for number in range(rng.choice([0, 0, 0, 0, 1, 1, 2, 3])):
            step = _key(rng)
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"step {number}")])
            made = _issued(rng, subject, issuer, issuer_key, step, is_authority=True)
            between.insert(0, made)
            issuer, issuer_key = made, step
        key = _key(rng)
        if rng.random() < 0.05:
            issuer, issuer_key = None, key
        leaf = _issued(rng, _name(rng), issuer, issuer_key, key, is_authority=False)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None  # not with this library
    sent = list(between)
    change = rng.randrange(8)
    if change == 0 and sent:
        sent.pop(rng.randrange(len(sent)))
    elif change == 1:
        rng.shuffle(sent)
    elif change == 2:
        sent.append(x509.load_pem_x509_certificate((world.folder / f"{authority}.crt").read_bytes()))
    elif change == 3:
        sent.append(leaf)
    pem = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in [leaf, *sent])
    path.write_bytes(pem + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def certificates(rng: random.Random, world: World) -> Presented | None:
    path = _chain(rng, world)
    if path is None:
        return None
    headers = rng.choice([[], [], [], ["X-Remote-User: boss"], ["X-Remote-User: boss", "X-Remote-Group: a"]])
    token = rng.choice([None, None, None, None, _ADMIN, "wrong"])
    return Presented(certificate=path, headers=list(headers), token=token)


# --------------------------------------------------------------------- headers


def front_proxies(rng: random.Random, world: World) -> Presented:
    names = [
        *(
            "X-Remote-User",
            "x-remote-user",
            "X-REMOTE-USER",
            "X-Other-User",
            "X-Remote-User ",
            "X_Remote_User",
            "X-Remote-Users",
        ),
        *(
            "X-Remote-Group",
            "X-Other-Group",
            "x-remote-group",
            "X-Remote-Uid",
            "X-Remote-Extra-A",
            "X-Remote-Extra-a%2Fb",
        ),
        *(
            "X-Other-Extra",
            "X-Remote-Extra-",
            "x-remote-extra-Scopes",
            "X-Remote-Extra-%zz",
            "X-Remote-Extra-%C3%BC",
            "X-Other-",
        ),
        *(
            "X-Remote-Extra-a%2fb",
            "X-Remote-Extra-a+b",
            "X-Remote-Extra-%",
            "X-Remote-Extra-%41%",
            "X-Remote-Extra-a.b/c",
        ),
    ]
    values = [
        "jane",
        "",
        " jane ",
        "system:admin",
        "system:masters",
        "jäne",
        "a,b",
        "a b",
        "\t",
        "x" * 3000,
        '"x"',
        "system:anonymous",
        "\udcff",
    ]
    headers = [f"{rng.choice(names)}: {rng.choice(values)}" for _ in range(rng.randrange(0, 6))]
    if rng.random() < 0.7:
        headers.insert(rng.randrange(len(headers) + 1), f"{rng.choice(names[:4])}: {rng.choice(values)}")
    if rng.random() < 0.2:
        headers.append(
            rng.choice(["Impersonate-User: bob", "Connection: close, X-Remote-User", "Authorization: Basic eDp5"])
        )
    certificate = rng.choice(["front", "front", "front", "stranger front", "client", "other front", "none"])
    token = rng.choice([None, None, None, _ADMIN, "wrong"])
    return Presented(certificate=_ready(world, certificate), headers=headers, token=token)


def _ready(world: World, name: str) -> Path | None:
    specs: dict[str, dict[str, Any]] = {
        "front": {"name": "front", "authority": "proxy"},
        "stranger front": {"name": "stranger", "authority": "proxy"},
        "client": {"name": "front", "groups": ["dev"], "authority": "ca"},
        "other front": {"name": "front", "authority": "other"},
        **{f"da-{name}": {"name": f"da-{name}"} for name in _ROLES},
    }
    return Credentials(world.folder).certificate(name, specs[name]) if name in specs else None


def impersonation(rng: random.Random, world: World) -> Presented:
    users = [
        "jane",
        "bob",
        "",
        " ",
        "system:anonymous",
        "system:serviceaccount:da:robot",
        "system:serviceaccount:da:",
        "system:node:n1",
        "system:node:",
        "system:masters",
        "jäne",
        "system:serviceaccount:da",
        "system:serviceaccount:a:b:c",
        "system:serviceaccount:DA:robot",
        "system:admin",
    ]
    groups = [
        "dev",
        "system:masters",
        "",
        "system:authenticated",
        "system:unauthenticated",
        "system:serviceaccounts",
        "system:nodes",
        "a,b",
    ]
    name = rng.choice(["Impersonate-User", "impersonate-user", "Impersonate-User"])
    headers = [f"{name}: {rng.choice(users)}" for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 1, 2]))]
    headers += [
        f"{rng.choice(['Impersonate-Group', 'impersonate-group'])}: {rng.choice(groups)}"
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3]))
    ]
    headers += [f"Impersonate-Uid: {rng.choice(['7', '8', '', ' '])}" for _ in range(rng.choice([0, 0, 0, 0, 1, 2]))]
    extras = [
        "a",
        "b",
        "A",
        "a%2Fb",
        "",
        "%zz",
        "ü",
        "a.b",
        "scopes",
        "example.com%2Fx",
        "%",
        "a_b",
        "authentication.kubernetes.io%2Fnode-name",
    ]
    headers += [
        f"Impersonate-Extra-{rng.choice(extras)}: {rng.choice(['x', '', 'y,z', 'ü', 'n1'])}"
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2]))
    ]
    headers += rng.choice([[]] * 8 + [["Impersonate-Nothing: x"], ["Impersonate: x"], ["X-Remote-User: boss"]])
    rng.shuffle(headers)
    who = rng.choice([*_ROLES, *_ROLES, "admin", "admin", "admin", "anonymous", "wrong"])
    token = {"admin": _ADMIN, "wrong": "wrong"}.get(who)
    return Presented(certificate=_ready(world, f"da-{who}"), headers=headers, token=token)


def spellings(rng: random.Random, world: World) -> Presented:
    """Ways of writing a good token and a bad one."""
    good, bad = _ADMIN, "wrong"
    encoded = base64.urlsafe_b64encode(good.encode()).decode()
    bearer = "base64url.bearer.authorization.k8s.io."
    words = [
        *(
            f"{scheme} {token}"
            for scheme in (
                "Bearer",
                "bearer",
                "BEARER",
                "beareR",
                "Token",
                "Basic",
                "Bearer:",
                "Bearer,",
                "Negotiate",
                "",
            )
            for token in (good, bad)
        ),
        *(
            f"Bearer  {good}",
            f"Bearer\t{good}",
            f" Bearer {good}",
            f"Bearer {good} ",
            f"Bearer {good} x",
            f"Bearer {good}, x",
            f'Bearer "{good}"',
        ),
        *(
            f"Bearer {good},Bearer {bad}",
            f"Bearer={good}",
            "Bearer",
            "Bearer ",
            "",
            " ",
            f"Bearer {bad} {good}",
            f"Basic {encoded}",
        ),
        *(
            f"Bearer\u00a0{good}",
            f"Bearer {good}\u00a0",
            f"Bearer {good}\udcff",
            f"Bearer \u200b{good}",
            f"Bearer  {good} {bad}",
            f"Bearer   {good}",
        ),
        f"Basic {base64.b64encode(f'admin:{good}'.encode()).decode()}",
    ]
    names = [
        "Authorization",
        "Authorization",
        "Authorization",
        "authorization",
        "AUTHORIZATION",
        "Proxy-Authorization",
        "X-Authorization",
        "Authorization2",
    ]
    headers = [f"{rng.choice(names)}: {rng.choice(words)}" for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]))]
    path, method = _REVIEWS, "POST"
    if rng.random() < 0.3:
        protocols = [
            bearer + encoded.rstrip("="),
            bearer + encoded,
            bearer,
            bearer + "%",
            bearer + _segment(b"wrong"),
            bearer + _segment(b"\xff"),
            "v4.channel.k8s.io",
            "",
            "base64.binary.k8s.io",
            bearer + encoded.rstrip("=") + "=",
            "BASE64URL.bearer.authorization.k8s.io." + encoded.rstrip("="),
        ]
        chosen = [rng.choice(protocols) for _ in range(rng.randrange(1, 4))]
        headers += (
            [f"Sec-WebSocket-Protocol: {rng.choice([', ', ',', ' , ']).join(chosen)}"]
            if rng.random() < 0.7
            else [f"Sec-WebSocket-Protocol: {protocol}" for protocol in chosen]
        )
        headers += rng.choice(
            [[], ["Upgrade: websocket"], ["Upgrade: WebSocket"], ["Upgrade: h2c"], ["Upgrade: websocket, x"]]
        )
        headers += rng.choice(
            [
                ["Connection: Upgrade"],
                ["Connection: keep-alive, upgrade"],
                ["Connection: close"],
                ["Connection: UPGRADE"],
                ["Connection: close", "Connection: upgrade"],
            ]
        )
        if rng.random() < 0.5:
            path, method = (
                rng.choice(
                    [
                        "/api/v1/namespaces/da/pods?watch=1&timeoutSeconds=1",
                        "/api/v1/namespaces/da/pods/p/exec?command=x",
                        "/api/v1/nodes",
                    ]
                ),
                "GET",
            )
            if rng.random() < 0.8:
                headers += [
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                    "Sec-WebSocket-Version: 13",
                    "Origin: http://x",
                ]
    if rng.random() < 0.2:
        path += f"?access_token={good}&token={good}"
    if rng.random() < 0.1:
        headers.append(f"Cookie: token={good}; Authorization=Bearer {good}")
    if rng.random() < 0.1:
        headers.append(
            rng.choice(
                [
                    "Impersonate-User: jane",
                    "X-Remote-User: jane",
                    "X-HTTP-Method-Override: DELETE",
                    "X-Forwarded-User: jane",
                ]
            )
        )
    return Presented(headers=headers, path=path, method=method)


TOPICS: Final[Mapping[str, Callable[[random.Random, World], Presented | None]]] = {
    "tokens": tokens,
    "certificates": certificates,
    "front-proxies": front_proxies,
    "impersonation": impersonation,
    "spellings": spellings,
}


# --------------------------------------------------------------------- running


def make(folder: Path) -> None:
    """Authorities that may not issue everything, beside the others."""
    credentials.make(folder)
    if (folder / "bundle.crt").exists():
        return
    now, day = datetime.now(UTC), timedelta(days=30)
    extra: dict[str, list[x509.ExtensionType]] = {
        "shallow": [x509.BasicConstraints(True, 0)],
        "narrow": [x509.BasicConstraints(True, None), x509.NameConstraints([x509.DNSName("good.example")], None)],
    }
    for name, extensions in extra.items():
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder(
            subject, subject, key.public_key(), x509.random_serial_number(), now - day, now + day
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=True)
        (folder / f"{name}.crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
        (folder / f"{name}.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "bundle.crt").write_bytes(
        b"".join((folder / f"{name}.crt").read_bytes() for name in ("ca", "narrow", "shallow"))
    )


def _files(folder: Path) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    make(folder)
    with credentials.prepared(folder) as ready:
        ready.flags("")
        print("\n".join(ready.placed(flag) for flag in FLAGS), flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return 0


def _plain(text: str) -> str:
    """Without what servers choose, and the order of fields."""
    status, _, body = text.partition(" ")
    body, _, warned = body.partition(" ['")
    with suppress(ValueError):
        text = f"{status} {json.dumps(json.loads(body), sort_keys=True)} {warned}"
    text = re.sub(r'"creationTimestamp": "[^"]*"', '"creationTimestamp": null', text)
    return _TIME.sub("TIME", _UID.sub("UID", text))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path)
    parser.add_argument("--oracle")
    parser.add_argument("--server")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--topic", choices=list(TOPICS))
    arguments = parser.parse_args()
    if arguments.files is not None:
        return _files(arguments.files.absolute())
    folder = arguments.folder.absolute()
    world = World(folder, Credentials(folder).url)
    servers = [Server(url, folder) for url in (arguments.oracle, arguments.server)]
    for server in servers:
        server.prepare()
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for number in range(arguments.seed, arguments.seed + arguments.count):
        rng = random.Random(number)
        topic = arguments.topic or rng.choice(list(TOPICS))
        presented = TOPICS[topic](rng, world)
        if presented is None:
            continue
        asked: list[Callable[[Server], str]] = [lambda server, what=presented: server.ask(what)]  # type: ignore[misc]
        if presented.token is not None and topic == "tokens":
            asked.append(lambda server, what=presented: server.review(what))  # type: ignore[misc]
        for ask in asked:
            oracle, got = (_plain(ask(found)) for found in servers)
            counts[f"{topic} {'equal' if oracle == got else 'different'}"] += 1
            counts[oracle[:3]] += 1
            kind = re.sub(r"[A-Za-z0-9+/_=-]{30,}", "…", f"{oracle[:160]} | {got[:160]}")
            if oracle != got and kind not in seen:
                seen.add(kind)
                told = repr(presented)
                print(
                    f"--- seed {number} {topic}: {told[:900]}\n  oracle: {oracle[:900]}\n  server: {got[:900]}",
                    flush=True,
                )
    print(json.dumps(counts, indent=1, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
