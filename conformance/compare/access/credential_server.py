"""A server that requests with random credentials are sent to, each over a new connection."""

import base64
import json
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from conformance.random.credentials.presented import ADMIN, ROLES, Presented, Token

_REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"


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
        text = self.send("POST", _TOKEN_REVIEWS, [f"Authorization: Bearer {ADMIN}"], json.dumps(review), None)
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
        text = self.send("POST", path, [f"Authorization: Bearer {ADMIN}"], json.dumps(obj), None)
        if text.startswith("409"):
            text = self.send("GET", f"{path}/{obj['metadata']['name']}", [f"Authorization: Bearer {ADMIN}"], "", None)
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
        for name, rules in ROLES.items():
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
