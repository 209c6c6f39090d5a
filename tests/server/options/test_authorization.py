"""The authorizers of a server as its flags and files ask for them; the webhook is a server of its own, on loopback."""

import asyncio
import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.apis.scheme import load
from fakeapiserver.auth.authorizers.rbac import RBAC
from fakeapiserver.auth.interfaces import Attributes, Decision, EvaluationError, UserInfo
from fakeapiserver.cli.flags import parse
from fakeapiserver.clock import SystemClock
from fakeapiserver.cluster import Cluster
from fakeapiserver.server.options.authorization import Authorization, Reloadable, authorization
from fakeapiserver.server.options.watched_file import WatchedFile
from fakeapiserver.transport.certificates import create_authority, issue_server
from fakeapiserver.transport.kubeconfigs import kubeconfig

CONTRADICTION = "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"


class Nothing:
    """An empty cluster."""

    revision = 1

    def list(self, resource: str, namespace: str = "") -> Sequence[Any]:
        return []

    def generation(self, resources: tuple[str, ...]) -> int:
        return 1

    def changes(self, resources: tuple[str, ...], revision: int) -> Sequence[Any]:
        return []


def build(*flags: str) -> Authorization:
    objects = Nothing()
    return authorization(parse(flags).config, load(), RBAC(objects), objects, SystemClock())


def ask(built: Authorization, user: str, verb: str = "get") -> tuple[Decision, str]:
    wanted = Attributes(UserInfo(user), verb, "", True, "", "v1", "pods", "", "shop", "web")
    return asyncio.run(built.authorizer.authorize(wanted))


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--authorization-mode=Magic"], 'authorization-mode "Magic" is not a valid mode'),
        (["--authorization-mode=RBAC,RBAC"], 'authorization-mode ["RBAC" "RBAC"] has mode specified more than once'),
        (["--authorization-mode=ABAC"], "authorization-mode ABAC's authorization policy file not passed"),
        (["--authorization-mode=Webhook"], "authorization-mode Webhook's authorization config file not passed"),
        (["--authorization-policy-file=x"], "cannot specify --authorization-policy-file without mode ABAC"),
        (
            ["--authorization-webhook-config-file=x"],
            "cannot specify --authorization-webhook-config-file without mode Webhook",
        ),
        (["--authorization-config=x", "--authorization-mode=RBAC"], CONTRADICTION),
        (["--authorization-config=x", "--authorization-webhook-version=v1"], CONTRADICTION),
        (["--authorization-config=/no/file"], "open /no/file: no such file or directory"),
        (
            ["--authorization-mode=Webhook", "--authorization-webhook-config-file=/no/file"],
            "invalid authorization config: stat /no/file: no such file or directory",
        ),
        (
            ["--authorization-mode=ABAC", "--authorization-policy-file=/no/file"],
            "invalid authorization config: open /no/file: no such file or directory",
        ),
        (
            ["--authorization-mode=ABAC,Magic,Magic"],
            '[authorization-mode ABAC\'s authorization policy file not passed, authorization-mode "Magic" is not a valid mode, '
            'authorization-mode "Magic" is not a valid mode, authorization-mode ["ABAC" "Magic" "Magic"] has mode specified more '
            "than once]",
        ),
    ],
)
def test_contradictions(flags: list[str], complaint: str) -> None:
    with pytest.raises((ValueError, OSError)) as refused:
        build(*flags)
    assert str(refused.value) == complaint


def test_modes_are_asked_in_order() -> None:
    assert ask(build("--authorization-mode=AlwaysDeny,RBAC"), "jane") == (
        Decision.NO_OPINION,
        "alwaysdeny: Everything is forbidden.",
    )
    assert ask(build("--authorization-mode=AlwaysDeny,AlwaysAllow"), "jane")[0] is Decision.ALLOW
    assert ask(build("--authorization-mode="), "jane")[0] is Decision.ALLOW


class Hook:
    """A TLS server that allows, denies or fails by the user's name, and keeps the reviews it was sent."""

    def __init__(self, folder: Path) -> None:
        self.reviews: list[dict[str, Any]] = []
        self.authorization: list[str] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.reviews.append(review)
                hook.authorization.append(self.headers["Authorization"])
                user = review["spec"]["user"]
                status = {"allowed": user == "allowed", "denied": user == "denied", "reason": user}
                self.send_response(503 if user == "broken" else 200)
                self.end_headers()
                self.wfile.write(json.dumps({"status": status}).encode())

            def log_message(self, *_: object) -> None:
                pass

        authority = create_authority()
        pair = issue_server(authority, ["127.0.0.1"])
        (folder / "hook.pem").write_bytes(pair.certificate + pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "hook.pem")
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.kubeconfig = folder / "hook.kubeconfig"
        url = f"https://127.0.0.1:{self.server.server_address[1]}/authorize"
        kubeconfig.write(self.kubeconfig, kubeconfig.render(url, authority=authority.certificate, token="s3cret"))


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    found = Hook(tmp_path)
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def test_a_webhook_by_flags(hook: Hook) -> None:
    built = build(
        "--authorization-mode=Webhook,AlwaysAllow",
        f"--authorization-webhook-config-file={hook.kubeconfig}",
        "--authorization-webhook-version=v1",
    )
    assert ask(built, "allowed") == (Decision.ALLOW, "allowed")
    assert ask(built, "denied") == (Decision.DENY, "denied")
    assert ask(built, "broken")[0] is Decision.ALLOW, "the next mode is asked"
    assert [ask(built, "allowed")[0] for _ in range(3)] == [Decision.ALLOW] * 3
    assert len(hook.reviews) == 3, "answers are remembered"
    assert set(hook.authorization) == {"Bearer s3cret"}


def config(hook: Hook, *more: dict[str, str], **settings: Any) -> str:
    webhook = {
        "timeout": "30s",
        "subjectAccessReviewVersion": "v1",
        "failurePolicy": "Deny",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(hook.kubeconfig)},
    }
    rows = [{"type": "Webhook", "name": "hook", "webhook": webhook | settings}, *more]
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
    return json.dumps(kind | {"authorizers": rows})


def test_a_file_that_changes(hook: Hook, tmp_path: Path) -> None:
    file = tmp_path / "authorization.json"
    file.write_text(config(hook))
    built = build(f"--authorization-config={file}")
    with pytest.raises(EvaluationError) as failed:
        ask(built, "broken")
    assert failed.value.decision is Decision.DENY

    (run,) = built.background
    watched = run.__self__  # type: ignore[attr-defined]
    assert isinstance(watched, WatchedFile)
    assert isinstance(built.authorizer, Reloadable)
    everybody = {"type": "AlwaysAllow", "name": "alwaysallow"}
    for content, decision in (
        (config(hook, everybody, failurePolicy="NoOpinion"), Decision.ALLOW),
        ("{", Decision.ALLOW),  # what can't be read changes nothing
    ):
        file.write_text(content)
        asyncio.run(watched.look())
        assert ask(built, "broken")[0] is decision, content


def test_a_failing_webhook_is_reported_in_a_500(hook: Hook, tmp_path: Path) -> None:
    tokens, file = tmp_path / "tokens.csv", tmp_path / "authorization.json"
    tokens.write_text("t,broken,1\n")
    file.write_text(config(hook))
    flags = parse([f"--token-auth-file={tokens}", f"--authorization-config={file}"]).config
    with Cluster.from_config(flags) as cluster:
        request = urllib.request.Request(f"{cluster.url}/api/v1/pods?a=<b>", headers={"Authorization": "Bearer t"})
        with pytest.raises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(request, context=ssl._create_unverified_context())
    said = "the server is currently unable to handle the request"
    assert answer.value.code == 500
    assert answer.value.read().decode() == f'Internal Server Error: "/api/v1/pods?a=&lt;b&gt;": {said}\n'
