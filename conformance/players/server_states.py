"""Brings a server into the states that the area `faults` is about: etcd paused or full, all seats taken, a token expired and others.

A request of a scenario with `"state"` is the first one that is sent in this state (`""`: of a healthy server). `"faults"` are the rules
that do to the clients of this project's server what the state does to those of the real one. `"lasts"` is the seconds that an answer takes;
this project's server is moved on in time instead.
"""

import base64
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import jwt

from conformance.bench.servers import TOKEN, Reference, end

Object = dict[str, Any]
_READY_SECONDS: Final = 60.0
# The user whose requests find no seat; an admin's never wait.
_CROWDED: Final = "crowd"
_QUOTA: Final = "/api/v1/namespaces/quotas/resourcequotas"
# States that are made by what a request says, or by the webhook that a scenario runs.
_OF_REQUESTS: Final = ("", "token expired", "client stale", "object gone", "webhook faulty", "aggregated server down")
_NO_WATCH_LIST: Final = "--feature-gates=WatchList=false"
_FLOWS: Final = "/apis/flowcontrol.apiserver.k8s.io/v1"


class ServerStates(Protocol):
    """Brings one of the two servers into states."""

    def enter(self, state: str, faults: Sequence[Mapping[str, Any]]) -> None:
        """Leaves the present state and enters another one."""

    def presented(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the request with the credentials that the state gives to the client."""

    def lasting(self, seconds: int) -> AbstractContextManager[None]:
        """Spends the seconds that the answer to the request takes, which is sent within the block."""


class InjectedFaults:
    """The states of this project's server: faults that are injected over HTTP."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url}/fakeapiserver/faults"
        self._token = token
        self._first = 0  # the number of the state's first fault

    def enter(self, state: str, faults: Sequence[Mapping[str, Any]]) -> None:
        assert bool(state) == bool(faults), f"the state {state!r} needs faults, and only a state does"
        unused = [fault["fault"] for fault in call("GET", self._url, self._token) if not fault["hits"]]
        assert not unused, f"faults that struck nothing: {unused}"
        call("DELETE", self._url, self._token)
        if faults:
            self._first = call("POST", self._url, self._token, list(faults))[0]["id"]

    def presented(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return request

    @contextmanager
    def lasting(self, seconds: int) -> Iterator[None]:
        struck = call("GET", f"{self._url}/{self._first}", self._token)["hits"]
        thread = threading.Thread(target=self._advance, args=(struck + 1, seconds))
        thread.start()
        yield
        thread.join()

    def _advance(self, hits: int, seconds: int) -> None:
        """Moves the clock on when the state's first fault has struck so many requests."""
        call("POST", f"{self._url}/{self._first}/wait", self._token, {"hits": hits, "timeout": 5})
        call("PUT", self._url.replace("/faults", "/clock"), self._token, {"advance": f"{seconds}s"})


class RealStates:
    """The states of a kube-apiserver and its etcd. `folder` has the file `pids` (etcd's, then the API server's) and the key `sa.key` of
    service accounts; `etcd` is the URL of etcd's clients.
    """

    def __init__(self, url: str, token: str, folder: Path, etcd: str) -> None:
        self._url, self._token, self._folder, self._etcd = url, token, folder, etcd
        self._state = ""
        self._started: list[subprocess.Popen[bytes]] = []
        # What enters a state, and what leaves it.
        self._actions: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "etcd paused": (self._pause_etcd, self._continue_etcd),
            "etcd full": (partial(self._alarm, "ACTIVATE"), partial(self._alarm, "DEACTIVATE")),
            "history compacted": (self._compact, _nothing),  # what is forgotten stays so
            "right missing": (self._withdraw_a_right, _nothing),
            "watch list off": (partial(self._restart, _NO_WATCH_LIST), self._restart),
            "priority level exhausted": (self._take_the_seats, self._give_seats),
            "quota used up": (self._use_up_a_quota, self._remove_the_quota),
        }

    def enter(self, state: str, faults: Sequence[Mapping[str, Any]]) -> None:
        del faults
        if self._state in self._actions:
            self._actions[self._state][1]()
        if state in self._actions:
            self._actions[state][0]()
        else:
            assert state in _OF_REQUESTS, f"nothing brings a server into the state {state!r}"
        self._state = state

    def presented(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._state != "token expired":
            return request
        now = int(time.time())
        account = {"name": "default", "uid": "d0a2c6f1-1111-4c7e-9d6c-1f2a3b4c5d6e"}
        claims = {
            "iss": "https://kubernetes.default.svc.cluster.local",
            "aud": ["https://kubernetes.default.svc.cluster.local"],
            "sub": "system:serviceaccount:default:default",
            "kubernetes.io": {"namespace": "default", "serviceaccount": account},
            "iat": now - 7200,
            "nbf": now - 7200,
            "exp": now - 3600,
        }
        return {**request, "token": jwt.encode(claims, (self._folder / "sa.key").read_text(), "RS256")}

    def lasting(self, seconds: int) -> AbstractContextManager[None]:
        return nullcontext()

    def end(self) -> None:
        """Ends the API servers that states have started."""
        end(self._started)

    # ------------------------------------------------------------------ etcd

    def _pause_etcd(self) -> None:
        os.kill(self._pids()[0], signal.SIGSTOP)

    def _continue_etcd(self) -> None:
        os.kill(self._pids()[0], signal.SIGCONT)
        self._wait_until_ready()

    def _alarm(self, action: str) -> None:
        """The alarm that etcd raises by itself when its quota of bytes is used up."""
        members = call("POST", f"{self._etcd}/v3/cluster/member/list", "", {})
        call(
            "POST",
            f"{self._etcd}/v3/maintenance/alarm",
            "",
            {"action": action, "memberID": members["header"]["member_id"], "alarm": "NOSPACE"},
        )

    def _compact(self) -> None:
        """The API server starts again, since its cache of watches remembers what etcd has forgotten."""
        key = base64.b64encode(b"/").decode()
        answer = call("POST", f"{self._etcd}/v3/kv/range", "", {"key": key})
        revision = answer["header"]["revision"]
        call("POST", f"{self._etcd}/v3/kv/compaction", "", {"revision": revision, "physical": True})
        self._restart()

    # ------------------------------------------------------------------ what objects do

    def _take_the_seats(self) -> None:
        limited = {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}
        rule: Object = {
            "subjects": [{"kind": "User", "user": {"name": _CROWDED}}],
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}],
        }
        rule["resourceRules"][0]["clusterScope"] = True
        for plural, kind, spec in (
            ("prioritylevelconfigurations", "PriorityLevelConfiguration", {"type": "Limited", "limited": limited}),
            (
                "flowschemas",
                "FlowSchema",
                {
                    "priorityLevelConfiguration": {"name": _CROWDED},
                    "matchingPrecedence": 2,
                    "distinguisherMethod": {"type": "ByUser"},
                    "rules": [rule],
                },
            ),
        ):
            made = {"kind": kind, "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "metadata": {"name": _CROWDED}}
            call("POST", f"{self._url}{_FLOWS}/{plural}", self._token, {**made, "spec": spec})
        time.sleep(3)  # until its configuration is digested
        self._slow = self._slow_request()
        time.sleep(1)

    def _slow_request(self) -> ssl.SSLSocket:
        """Sends the head of a request, whose body the server waits for: the first request is let in even where there are no seats."""
        address = urlsplit(self._url)
        assert address.hostname is not None
        context = ssl._create_unverified_context()
        connection = context.wrap_socket(socket.create_connection((address.hostname, address.port or 443)))
        head = (
            "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
            f"Authorization: Bearer {self._token}\r\nImpersonate-User: {_CROWDED}\r\n\r\n"
        )
        connection.sendall(head.encode())
        return connection

    def _give_seats(self) -> None:
        self._slow.close()
        for plural in ("flowschemas", "prioritylevelconfigurations"):
            call("DELETE", f"{self._url}{_FLOWS}/{plural}/{_CROWDED}", self._token)

    def _withdraw_a_right(self) -> None:
        call("DELETE", f"{self._url}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/nobody", self._token)
        time.sleep(1)

    def _use_up_a_quota(self) -> None:
        hard = {"configmaps": "0", "pods": "0", "count/deployments.apps": "0"}
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": hard}}
        stored = call("POST", self._url + _QUOTA, self._token, quota)
        stored["status"] = {"hard": hard, "used": dict.fromkeys(hard, "0")}
        call("PUT", f"{self._url}{_QUOTA}/small/status", self._token, stored)
        time.sleep(1)

    def _remove_the_quota(self) -> None:
        call("DELETE", f"{self._url}{_QUOTA}/small", self._token)

    # ------------------------------------------------------------------ processes

    def _pids(self) -> list[int]:
        return [int(line) for line in (self._folder / "pids").read_text().split()]

    def _restart(self, flag: str = "") -> None:
        """Kills the API server and starts it with the same command, and another flag."""
        etcd, process = self._pids()
        command = Path(f"/proc/{process}/cmdline").read_text().rstrip("\0").split("\0")
        command = [part for part in command if part != _NO_WATCH_LIST] + ([flag] if flag else [])
        os.kill(process, signal.SIGKILL)
        while Path(f"/proc/{process}/cmdline").exists() and Path(f"/proc/{process}/cmdline").read_text():
            time.sleep(0.05)
        with (self._folder / "apiserver.log").open("ab") as log:
            started = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log, start_new_session=True)
        self._started.append(started)
        (self._folder / "pids").write_text(f"{etcd}\n{started.pid}\n")
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + _READY_SECONDS
        while time.monotonic() < end:
            with suppress(OSError):
                call("GET", f"{self._url}/readyz", self._token)
                return
            time.sleep(0.1)
        log = self._folder / "apiserver.log"
        said = log.read_text(errors="replace")[-500:] if log.exists() else ""
        raise TimeoutError(f"{self._url} was not ready within {_READY_SECONDS:.0f} s: {said}")


@contextmanager
def real_states(reference: Reference) -> Iterator[RealStates]:
    """The states of a reference with an etcd of its own. Ends the API servers that states have started in the place of the first."""
    (reference.folder / "pids").write_text("".join(f"{process.pid}\n" for process in reference.processes))
    states = RealStates(reference.url, TOKEN, reference.folder, reference.etcd_url)
    try:
        yield states
    finally:
        states.end()


def _nothing() -> None: ...


def injects_faults(url: str, token: str) -> bool:
    """Reports whether a server is this project's, and can be brought into states."""
    try:
        return isinstance(call("GET", f"{url}/fakeapiserver/faults", token), list)
    except OSError:
        return False


def call(method: str, url: str, token: str, body: object = None) -> Any:
    """Returns the JSON of an answer, or None for another one. Raises OSError. TLS is not verified: the servers are on loopback."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    context = ssl._create_unverified_context() if url.startswith("https") else None
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        raise OSError(f"{method} {url}: {error.code} {error.read().decode(errors='replace')[:500]}") from None
    with suppress(ValueError):
        return json.loads(text)
    return None
