"""`cluster.faults`: what clients meet, and that the cluster itself is untouched."""

import asyncio
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from fakeapiserver import AsyncCluster, Cluster
from fakeapiserver.apimachinery.serializer import cbor, yaml
from fakeapiserver.apimachinery.serializer.protobuf import envelope
from fakeapiserver.apis import protobuf

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.text)

    @property
    def events(self) -> list[tuple[str, str]]:
        """The type of each event of a watch, with the object's name, or the reason of an error."""
        events = map(json.loads, self.text.splitlines())
        return [
            (event["type"], event["object"].get("reason") or event["object"]["metadata"].get("name", ""))
            for event in events
        ]


class Client:
    """Sends each request over a connection of its own."""

    def __init__(self, cluster: Cluster | AsyncCluster) -> None:
        self._host, _, port = cluster.url.removeprefix("https://").partition(":")
        self._port = int(port)
        self._trusted = ssl.create_default_context(cadata=cluster.ca.decode())
        self._token = cluster.token

    def ask(
        self, method: str, path: str, body: object = None, media_type: str = "application/json", agent: str = "test"
    ) -> Answer:
        return self.send(method, path, json.dumps(body).encode() if body is not None else None, media_type, agent)

    def send(self, method: str, path: str, body: bytes | None, media_type: str, agent: str = "test") -> Answer:
        connection = http.client.HTTPSConnection(self._host, self._port, context=self._trusted, timeout=20)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": media_type, "User-Agent": agent}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode()
            return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, text)
        finally:
            connection.close()

    def lines(self, path: str) -> Iterator[bytes]:
        """Yields the lines of an answer as they come."""
        connection = http.client.HTTPSConnection(self._host, self._port, context=self._trusted, timeout=20)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}", "User-Agent": "test"})
            response = connection.getresponse()
            while data := response.read1():  # readline hides that the last chunk is missing
                yield from data.splitlines()
        finally:
            connection.close()

    def create(self, name: str, **data: str) -> Answer:
        return self.ask("POST", MAPS, {"metadata": {"name": name}, "data": data})

    def patch(self, name: str, **data: str) -> Answer:
        return self.ask("PATCH", f"{MAPS}/{name}", {"data": data}, MERGE)

    def exists(self, name: str) -> bool:
        return self.ask("GET", f"{MAPS}/{name}").status == 200

    def watch(self, query: str = "resourceVersion=0", seconds: int = 1) -> Answer:
        return self.ask("GET", f"{MAPS}?watch=1&timeoutSeconds={seconds}&{query}")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    client = Client(cluster)
    client.create("a", x="1")
    yield client
    cluster.faults.clear()
    client.ask("DELETE", MAPS)


# ------------------------------------------------------------------- answers

NOT_FOUND = 'configmaps "a" not found'
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (400, "BadRequest", "the server rejected our request for an unknown reason"),
        (401, "Unauthorized", "Unauthorized"),
        (
            403,
            "Forbidden",
            'configmaps "a" is forbidden: User "system:apiserver" cannot get resource "configmaps" in API group ""',
        ),
        (404, "NotFound", NOT_FOUND),
        (409, "Conflict", f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'),
        (410, "Expired", "too old resource version: "),
        (422, "Invalid", 'configmaps "a" is invalid'),
        (500, "", "etcdserver: request timed out"),
        (504, "Timeout", "Timeout: request did not complete within the allotted timeout"),
    ],
)
def test_a_read_is_refused_as_a_real_server_refuses_it(
    cluster: Cluster, client: Client, status: int, reason: str, message: str
) -> None:
    with cluster.faults.add(verb="get", resource="configmaps", status=status) as fault:
        answer = client.ask("GET", f"{MAPS}/a")
    assert (answer.status, answer.body["code"], answer.body.get("reason", "")) == (status, status, reason)
    assert answer.body["message"].startswith(message)
    assert answer.headers["fakeapiserver-fault"] == str(fault.id)
    assert (fault.seen, fault.hits) == (1, 1)
    assert client.exists("a")


@pytest.mark.parametrize(
    ("fields", "text", "retry_after"),
    [
        ({"status": 429}, "Too many requests, please try again later.\n", "1"),
        ({"status": 429, "retry_after": 7}, "Too many requests, please try again later.\n", "7"),
        ({"status": 503}, "service unavailable\n", None),
        ({"status": 503, "retry_after": 3}, "service unavailable\n", "3"),
    ],
)
def test_refusals_that_are_text(
    cluster: Cluster, client: Client, fields: dict[str, Any], text: str, retry_after: str | None
) -> None:
    with cluster.faults.add(**fields):
        answer = client.ask("GET", f"{MAPS}/a")
    assert (answer.status, answer.text, answer.headers.get("retry-after")) == (fields["status"], text, retry_after)


def test_a_refusal_in_the_callers_words(cluster: Cluster, client: Client) -> None:
    causes = [{"field": "data.x", "message": "no"}]
    with cluster.faults.add(status=422, reason="Invalid", message="not today", causes=causes):
        body = client.patch("a", x="2").body
    assert (body["reason"], body["message"]) == ("Invalid", "not today")
    assert body["details"] == {"name": "a", "kind": "configmaps", "causes": causes}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (409, 'configmaps "b" already exists'),
        (500, "etcdserver: mvcc: database space exceeded"),
        (504, "Timeout: request did not complete within requested timeout - context deadline exceeded"),
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_write_is_refused_before_or_after_it_is_stored(
    cluster: Cluster, client: Client, status: int, message: str, when: Any
) -> None:
    with cluster.faults.add(verb="write", status=status, when=when):
        answer = client.create("b")
    assert (answer.status, answer.body["message"]) == (status, message)
    assert client.exists("b") == (when == "after")


# --------------------------------------------------------------- connections


@pytest.mark.parametrize(("reset", "stored"), [("before", False), ("after", True), ("body", True)])
def test_the_connection_is_reset(cluster: Cluster, client: Client, reset: Any, stored: bool) -> None:
    with cluster.faults.add(verb="create", reset=reset), pytest.raises((OSError, http.client.HTTPException)):
        client.create("b")
    assert client.exists("b") == stored


def received(connection: socket.socket) -> None:
    """Reads until the end."""
    while connection.recv(10_000):
        pass


def test_a_reset_is_one_of_tcp(cluster: Cluster, client: Client) -> None:
    host, port = cluster.url.removeprefix("https://").split(":")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusted = ssl.create_default_context(cadata=cluster.ca.decode())
    tls = trusted.wrap_bio(incoming, outgoing, server_hostname=host)
    request = f"GET {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {cluster.token}\r\n\r\n"
    # Python's TLS sockets show a reset as an orderly end
    with cluster.faults.add(reset="before"), socket.create_connection((host, int(port))) as connection:
        connected = False
        while not connected:
            try:
                tls.do_handshake()
                tls.write(request.encode())
                connected = True
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(10_000))
        connection.sendall(outgoing.read())
        with pytest.raises(ConnectionResetError):
            received(connection)


def test_a_body_breaks_off(cluster: Cluster, client: Client) -> None:
    with cluster.faults.add(truncate=20), pytest.raises(http.client.IncompleteRead) as broken:
        client.ask("GET", f"{MAPS}/a")
    assert len(broken.value.partial) == 20


# -------------------------------------------------------------------- choice


@pytest.mark.parametrize(
    ("fields", "struck"),
    [
        ({"verb": "patch"}, True),
        ({"verb": "update"}, False),
        ({"resource": "configmaps"}, True),
        ({"resource": "config*"}, True),
        ({"resource": "configmaps/status"}, False),
        ({"resource": "configmaps.apps"}, False),
        ({"resource": ["secrets", "configmaps"]}, True),
        ({"group": ""}, True),
        ({"group": "apps"}, False),
        ({"version": "v1"}, True),
        ({"subresource": "status"}, False),
        ({"namespace": "default", "name": "a"}, True),
        ({"namespace": "kube-*"}, False),
        ({"name": "b"}, False),
        ({"user": "system:apiserver"}, True),
        ({"user": "jane"}, False),
        ({"user_group": "system:masters"}, True),
        ({"user_group": "dev"}, False),
        ({"user_agent": "my-operator/*"}, True),
        ({"user_agent": "kubectl*"}, False),
        ({"connection": "127.0.0.1:*"}, True),
        ({"connection": "10.*"}, False),
        ({"labels": "app=web"}, False),
        ({"object": "object.data.x == '2'"}, True),
        ({"object": "object.data.x == oldObject.data.x"}, False),
        ({"object": "oldObject.data.x == '1'"}, True),
        ({"object": "object.spec.replicas > 3"}, False),
        ({"path": "/version"}, False),
        ({"path": "/api/v1/*"}, True),
    ],
)
def test_which_requests_are_struck(cluster: Cluster, client: Client, fields: Any, struck: bool) -> None:
    with cluster.faults.add(status=409, **fields) as fault:
        answer = client.ask("PATCH", f"{MAPS}/a", {"data": {"x": "2"}}, MERGE, agent="my-operator/1.0")
    assert (answer.status, fault.hits) == ((409, 1) if struck else (200, 0))


def _protobuf(body: dict[str, Any]) -> bytes:
    return envelope("v1", "ConfigMap", [protobuf.encoder().message("k8s.io.api.core.v1.ConfigMap")(body)])


@pytest.mark.parametrize(
    ("media_type", "encode"),
    [
        ("application/json", lambda body: json.dumps(body).encode()),
        ("application/yaml", yaml.encode),
        ("application/cbor", cbor.encode),
        ("application/vnd.kubernetes.protobuf", _protobuf),
    ],
)
def test_the_body_is_read_in_every_format(
    cluster: Cluster, client: Client, media_type: str, encode: Callable[[Any], bytes]
) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "2"}}
    with cluster.faults.add(verb="create", object="object.data.x == '2'", status=409) as fault:
        client.send("POST", MAPS, encode(body), media_type)
    assert fault.hits == 1


def test_labels_are_those_of_the_object(cluster: Cluster, client: Client) -> None:
    client.ask("POST", MAPS, {"metadata": {"name": "web", "labels": {"app": "web"}}})
    with cluster.faults.add(labels="app=web", status=404):
        assert [client.exists(name) for name in ("web", "a")] == [False, True]


def test_the_control_of_the_test_is_never_struck(cluster: Cluster, client: Client) -> None:
    with cluster.faults.add(path="*", status=503):
        assert client.ask("GET", "/version").status == 503
        assert client.ask("GET", "/fakeapiserver/state").status == 200


def test_faults_apply_in_their_order(cluster: Cluster, client: Client) -> None:
    with (
        cluster.faults.add(verb="get", status=503, times=1),
        cluster.faults.add(verb="get", status=500, times=1) as last,
    ):
        statuses = [client.ask("GET", f"{MAPS}/a").status for _ in range(3)]
        assert [fault.hits for fault in cluster.faults.list()] == [1, 1]
    assert statuses == [503, 500, 200]
    assert repr(last) == f"<fault {last.id} (verb=get status=500 times=1): 1 hits>"


def test_a_bad_fault_is_not_added(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match=r"there is no verb 'gett' \(did you mean 'get'\?\)"):
        cluster.faults.add(verb="gett", status=409)
    assert cluster.faults.list() == []


def test_a_wait_for_hits_ends_with_the_count(cluster: Cluster, client: Client) -> None:
    with cluster.faults.add(verb="get", status=503) as fault, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.ask, "GET", f"{MAPS}/a")
        fault.wait(1)
        assert answer.result().status == 503
        with pytest.raises(TimeoutError, match=r"struck 1 of 2 requests within 0.01 s; one request matched it"):
            fault.wait(2, timeout=0.01)


# --------------------------------------------------------------------- reads


def test_a_lagging_server_serves_old_states(cluster: Cluster, client: Client) -> None:
    with cluster.faults.add(stale=True, user_agent="old") as fault:
        client.create("new")
        client.patch("a", x="2")
        seen = [
            client.ask("GET", path, agent="old")
            for path in (f"{MAPS}/new?resourceVersion=0", f"{MAPS}/a?resourceVersion=0")
        ]
        listed = client.ask("GET", f"{MAPS}?resourceVersion=0", agent="old").body
        quorum = [client.ask("GET", path, agent="old").status for path in (f"{MAPS}/new", f"{MAPS}?resourceVersion=")]
        assert client.ask("GET", f"{MAPS}/new?resourceVersion=0").status == 200
        assert fault.hits == 5
    assert (seen[0].status, seen[1].body["data"]) == (404, {"x": "1"})
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    assert int(listed["metadata"]["resourceVersion"]) < int(
        client.ask("GET", f"{MAPS}/a").body["metadata"]["resourceVersion"]
    )
    assert quorum == [200, 200]
    assert client.ask("GET", f"{MAPS}/new?resourceVersion=0", agent="old").status == 200


def test_a_lagging_server_stays_at_the_revision_of_a_hit(cluster: Cluster, client: Client) -> None:
    with cluster.faults.add(user_agent="noted", status=503) as noted:
        client.ask("GET", f"{MAPS}/a", agent="noted")
        client.patch("a", x="2")
        with cluster.faults.add(stale=True, user_agent="old") as stale:
            stale.stay_at(noted.revision)
            seen = client.ask("GET", f"{MAPS}/a?resourceVersion=0", agent="old")
    assert seen.body["data"] == {"x": "1"}


def test_pages_expire(cluster: Cluster, client: Client) -> None:
    client.create("b")
    page = client.ask("GET", f"{MAPS}?limit=1").body["metadata"]["continue"]
    with cluster.faults.add(expire_continue=True):
        answer = client.ask("GET", f"{MAPS}?limit=1&continue={page}")
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    assert answer.body["metadata"]["continue"]


# -------------------------------------------------------------------- watches


@pytest.mark.parametrize(
    ("fields", "query", "events"),
    [
        ({"stop_after": 1}, "resourceVersion=0", [("ADDED", "a")]),
        ({"stop_after": 0}, "resourceVersion=0", []),
        ({"expire": "now"}, "resourceVersion=0", [("ADDED", "a"), ("ADDED", "b"), ("ERROR", "Expired")]),
        ({"expire": "now", "stop_after": 1}, "resourceVersion=0", [("ADDED", "a"), ("ERROR", "Expired")]),
        ({"expire": "resume"}, "resourceVersion=1", [("ERROR", "Expired")]),
        ({"expire": "resume"}, "resourceVersion=0", [("ADDED", "a"), ("ADDED", "b")]),
    ],
)
def test_how_a_watch_ends(
    cluster: Cluster, client: Client, fields: Any, query: str, events: list[tuple[str, str]]
) -> None:
    client.create("b")
    with cluster.faults.add(**fields):
        assert client.watch(query).events == events


def test_a_watch_is_cut(cluster: Cluster, client: Client) -> None:
    with cluster.faults.add(stop_after=1, end="cut"), pytest.raises(http.client.IncompleteRead) as cut:
        client.watch()
    assert json.loads(cut.value.partial)["type"] == "ADDED"


def test_a_watch_is_reset_within_an_event(cluster: Cluster, client: Client) -> None:
    with cluster.faults.add(reset="body", verb="watch"), pytest.raises((OSError, http.client.HTTPException)) as reset:
        client.watch()
    partial = getattr(reset.value, "partial", b'{"type":"ADDED"')
    assert partial.startswith(b'{"type":"ADDED"')
    assert not partial.endswith(b"}")


@pytest.mark.parametrize("truncate", [0, 1, 1000])
def test_an_answer_breaks_off_after_so_many_bytes(cluster: Cluster, client: Client, truncate: int) -> None:
    whole = client.ask("GET", f"{MAPS}/a").text.encode()
    with cluster.faults.add(truncate=truncate, verb="get"):
        if truncate >= len(whole):
            assert client.ask("GET", f"{MAPS}/a").text.encode() == whole
        else:
            with pytest.raises(http.client.IncompleteRead) as broken:
                client.ask("GET", f"{MAPS}/a")
            assert broken.value.partial == whole[:truncate]


def test_a_server_without_watch_lists(cluster: Cluster, client: Client) -> None:
    query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    with cluster.faults.add(watch_list=False):
        answer = client.watch(query)
    assert (answer.status, answer.body["details"]["causes"][0]["field"]) == (422, "sendInitialEvents")
    assert [kind for kind, _ in client.watch(query).events] == ["ADDED", "BOOKMARK"]


Watching = Callable[[], Awaitable[list[tuple[str, str]]]]


@pytest.mark.parametrize(
    ("fields", "at_once", "later"),
    [
        ({"delay": "5s"}, [], ["ADDED b", "MODIFIED b", "ADDED c", "DELETED c"]),
        ({"coalesce": "5s"}, [], ["ADDED b"]),
        ({"unreal": True, "duplicate": True}, ["ADDED b", "ADDED b"], None),
        ({"unreal": True, "lose": 2}, ["ADDED b", "ADDED c"], None),
    ],
)
def test_what_happens_to_events(fields: Any, at_once: list[str], later: list[str] | None) -> None:
    async def run() -> tuple[list[str], list[str]]:
        async with AsyncCluster(controllers=()) as cluster:
            client = Client(cluster)
            await cluster.clock.stop()
            await cluster.faults.add(resource="configmaps", **fields)
            version = (await asyncio.to_thread(client.ask, "GET", MAPS)).body["metadata"]["resourceVersion"]
            watching = asyncio.ensure_future(asyncio.to_thread(client.watch, f"resourceVersion={version}", 8))
            await asyncio.sleep(0.1)  # the watch is there
            for change in (lambda: client.create("b"), lambda: client.patch("b", x="2"), lambda: client.create("c")):
                await asyncio.to_thread(change)
            await asyncio.to_thread(client.ask, "DELETE", f"{MAPS}/c")
            await cluster.clock.advance("4s")
            await asyncio.sleep(0.05)
            assert not watching.done()
            await cluster.clock.advance("5s")
            await cluster.lose_watches()
            answer = await watching
            return [f"{kind} {name}" for kind, name in answer.events], []

    events, _ = asyncio.run(run())
    assert events[: len(at_once)] == at_once
    if later is not None:
        assert events == later


# ------------------------------------------------------------------------ time


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({"stop_after": 0}, ["ADDED b", "end"]),
        ({"stop_after": 1}, ["ADDED b", "ADDED c", "end"]),
        ({"stop_after": 0, "end": "cut"}, ["ADDED b", "IncompleteRead"]),
        ({"expire": "now"}, ["ADDED b", "ERROR ", "end"]),
        ({"delay": "5s"}, ["ADDED b"]),
        ({"stale": True}, ["ADDED b"]),
        ({"lag": 2}, ["ADDED b", "ADDED c"]),
        ({"unreal": True, "duplicate": True}, ["ADDED b", *["ADDED c"] * 2, *["ADDED d"] * 2, *["ADDED e"] * 2]),
        ({"expire": "resume"}, ["ADDED b", "ADDED c", "ADDED d", "ADDED e"]),
        ({"delay": "5s", "user_agent": "other*"}, ["ADDED b", "ADDED c", "ADDED d", "ADDED e"]),
    ],
)
def test_a_watch_that_is_open_already(fields: Any, seen: list[str]) -> None:
    async def run() -> list[str]:
        async with AsyncCluster(controllers=()) as cluster:
            client = Client(cluster)
            await cluster.clock.stop()
            revision = (await asyncio.to_thread(client.ask, "GET", MAPS)).body["metadata"]["resourceVersion"]
            events: asyncio.Queue[str] = asyncio.Queue()
            reading = threading.Thread(
                target=read_watch, args=(client, revision, asyncio.get_running_loop(), events), daemon=True
            )
            reading.start()
            await cluster.requests.wait_for("watch configmaps")
            await asyncio.to_thread(client.create, "b")
            shown = [await events.get()]
            await cluster.faults.add(resource="configmaps", verb="watch", **fields)
            for name in "cde":
                await asyncio.to_thread(client.create, name)
            while len(shown) < len(seen):
                shown.append(await asyncio.wait_for(events.get(), 5))
            await asyncio.sleep(0.05)  # nothing more comes
            return shown + [events.get_nowait() for _ in range(events.qsize())]

    assert asyncio.run(run()) == seen


def read_watch(client: Client, revision: str, loop: asyncio.AbstractEventLoop, events: "asyncio.Queue[str]") -> None:
    """Passes the events of a watch on as they come, then how it ended."""

    def say(text: str) -> None:
        loop.call_soon_threadsafe(events.put_nowait, text)

    try:
        for line in client.lines(f"{MAPS}?watch=true&resourceVersion={revision}"):
            event = json.loads(line)
            say(f"{event['type']} {event['object'].get('metadata', {}).get('name', '')}")
        say("end")
    except (OSError, http.client.HTTPException) as error:
        with suppress(RuntimeError):  # the cluster has ended
            say(type(error).__name__)


def test_latency_and_hanging_are_on_the_clusters_clock() -> None:
    async def run() -> None:
        async with AsyncCluster(controllers=()) as cluster:
            client = Client(cluster)
            await cluster.clock.stop()
            fault = await cluster.faults.add(verb="get", latency="30s", times=1)
            answer = asyncio.ensure_future(asyncio.to_thread(client.ask, "GET", f"{MAPS}/x"))
            await fault.wait()
            assert not answer.done()
            await cluster.clock.advance("30s")
            assert (await answer).status == 404
            async with await cluster.faults.add(verb="get", hang=True) as hanging:
                answer = asyncio.ensure_future(asyncio.to_thread(client.ask, "GET", f"{MAPS}/x"))
                await hanging.wait()
                assert not answer.done()
            assert (await answer).status == 404  # the fault is removed: the request goes on
            await cluster.faults.add(verb=["get", "create"], hang=True)
            reading = asyncio.ensure_future(asyncio.to_thread(client.ask, "GET", f"{MAPS}/x"))
            writing = asyncio.ensure_future(asyncio.to_thread(client.create, "x"))
            await (await cluster.faults.list())[-1].wait(2)
            await cluster.clock.advance("34s")
            assert (await writing).status == 504
            assert not reading.done()
            await cluster.clock.advance("26s")
            assert (await reading).status == 504

    asyncio.run(run())


def test_the_answer_of_a_stored_write_hangs() -> None:
    async def run() -> None:
        async with AsyncCluster(controllers=(), kept_requests=100) as cluster:
            client = Client(cluster)
            await cluster.clock.stop()
            async with await cluster.faults.add(verb="write", hang=True, when="after") as hanging:
                writing = asyncio.ensure_future(asyncio.to_thread(client.create, "x"))
                await hanging.wait()
                assert await asyncio.to_thread(client.exists, "x")
                assert not writing.done()
            assert (await writing).body["metadata"]["name"] == "x"
            await cluster.faults.add(verb="write", hang=True, when="after")
            writing = asyncio.ensure_future(asyncio.to_thread(client.create, "y"))
            await cluster.requests.wait_for("create configmaps", count=2)
            await cluster.clock.advance("34s")
            with pytest.raises(http.client.IncompleteRead):
                await writing

    asyncio.run(run())


def test_another_holder_takes_the_lease(cluster: Cluster, client: Client) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    mine = {"metadata": {"name": "op"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
    held = client.ask("POST", leases, mine).body
    with cluster.faults.add(resource="leases", name="op", holder="another"):
        refused = client.ask("PUT", f"{leases}/op", held)
        assert (refused.status, refused.body["reason"]) == (409, "Conflict")
        seen = client.ask("GET", f"{leases}/op").body["spec"]
    assert (seen["holderIdentity"], seen["leaseTransitions"], seen["leaseDurationSeconds"]) == ("another", 1, 15)
    stays = client.ask("GET", f"{leases}/op").body
    assert stays["spec"] == {**seen, "renewTime": stays["spec"]["renewTime"]}
    assert client.ask("PUT", f"{leases}/op", {**stays, "spec": mine["spec"]}).status == 200


def test_a_quota_is_used_up(cluster: Cluster, client: Client) -> None:
    """The answer is that of a real quota with the same name and numbers."""
    quotas = "/api/v1/namespaces/tight/resourcequotas"
    maps = "/api/v1/namespaces/tight/configmaps"
    client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "tight"}})
    client.ask("POST", maps, {"metadata": {"name": "one"}})
    with cluster.faults.add(quota="small", namespace="tight"):
        got = client.ask("POST", maps, {"metadata": {"name": "two"}})
        assert client.ask("GET", f"{maps}/one").status == 200
    client.ask("POST", quotas, {"metadata": {"name": "small"}, "spec": {"hard": {"configmaps": "1"}}})
    used = {"status": {"hard": {"configmaps": "1"}, "used": {"configmaps": "1"}}}
    client.ask("PATCH", f"{quotas}/small/status", used, MERGE)
    real = client.ask("POST", maps, {"metadata": {"name": "two"}})
    assert (real.status, real.body) == (403, got.body)
