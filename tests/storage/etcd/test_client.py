"""The client against a real etcd: requests, watches, leases, errors, fail-over."""

import asyncio
import itertools
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.storage.etcd.addresses import TLSFiles
from fakeapiserver.storage.etcd.client import Client, prefix_end
from fakeapiserver.storage.etcd.errors import (
    EtcdError,
    FutureRevision,
    LeaseNotFound,
    NoConnection,
    NoQuorum,
    NoSpace,
    Refused,
    RevisionCompacted,
    TimedOut,
    TooLarge,
    UnknownOutcome,
)
from fakeapiserver.storage.etcd.messages import (
    DELETE,
    EQUAL,
    MOD,
    PUT,
    Compare,
    DeleteRangeRequest,
    Event,
    PutRequest,
    RangeRequest,
    RequestOp,
    TxnRequest,
    TxnResponse,
    WatchCreateRequest,
)
from fakeapiserver.transport import certificates
from fakeapiserver.transport.free_ports import free_port

NewEtcd = Callable[..., EtcdProcess]
Result = TypeVar("Result")


def run(url: str | Sequence[str], scenario: Callable[[Client], Coroutine[Any, Any, Result]], **options: Any) -> Result:
    """Runs the scenario with a client of these endpoints, which is closed afterwards."""

    async def main() -> Result:
        client = Client.of([url] if isinstance(url, str) else url, **options)
        try:
            return await scenario(client)
        finally:
            await client.close()

    return asyncio.run(main())


async def swap(client: Client, key: str, expected: int, value: bytes, lease: int = 0) -> TxnResponse:
    """Writes the key if it is at that revision, and reads it otherwise."""
    return await client.txn(
        TxnRequest(
            (Compare(EQUAL, MOD, key.encode(), mod_revision=expected),),
            (RequestOp(request_put=PutRequest(key.encode(), value, lease)),),
            (RequestOp(request_range=RangeRequest(key.encode())),),
        )
    )


async def delete(client: Client, key: str) -> TxnResponse:
    return await client.txn(
        TxnRequest(success=(RequestOp(request_delete_range=DeleteRangeRequest(key.encode(), prev_kv=True)),))
    )


def everything(prefix: str) -> RangeRequest:
    return RangeRequest(prefix.encode(), prefix_end(prefix.encode()))


def test_a_swap_succeeds_once_and_then_shows_what_is_stored(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario(client: Client) -> None:
        first = await swap(client, f"{prefix}a", 0, b"1")
        assert first.succeeded
        lost = await swap(client, f"{prefix}a", 0, b"2")
        assert not lost.succeeded
        response = lost.responses[0].response_range
        assert response is not None
        (stored,) = response.kvs
        assert (stored.value, stored.mod_revision, stored.version) == (b"1", first.header.revision, 1)
        gone = (await delete(client, f"{prefix}a")).responses[0].response_delete_range
        assert gone is not None
        assert [each.value for each in gone.prev_kvs] == [b"1"]

    run(shared_etcd.url, scenario)


def test_ranges_have_limits_and_revisions(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario(client: Client) -> None:
        revisions = [(await swap(client, f"{prefix}{name}", 0, b"v")).header.revision for name in "abc"]
        start, end = prefix.encode(), prefix_end(prefix.encode())
        page = await client.range(RangeRequest(start, end, limit=2))
        assert ([each.key for each in page.kvs], page.more, page.count) == ([start + b"a", start + b"b"], True, 3)
        old = await client.range(RangeRequest(start, end, revision=revisions[0]))
        assert [each.mod_revision for each in old.kvs] == revisions[:1]
        assert (await client.range(RangeRequest(start, end, count_only=True))).kvs == ()

    run(shared_etcd.url, scenario)


def test_a_watch_has_every_event_and_reports_progress(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario(client: Client) -> None:
        first = (await swap(client, f"{prefix}a", 0, b"1")).header.revision
        request = WatchCreateRequest(prefix.encode(), prefix_end(prefix.encode()), first, fragment=True)
        watch = await client.watch(request)
        await swap(client, f"{prefix}a", first, b"2")
        last = (await delete(client, f"{prefix}a")).header.revision
        events: list[Event] = []
        while not events or events[-1].kv.mod_revision < last:
            events += (await watch.next()).events
        assert [(event.type, event.kv.value) for event in events] == [(PUT, b"1"), (PUT, b"2"), (DELETE, b"")]
        elsewhere = (await swap(client, f"/elsewhere{prefix}", 0, b"")).header.revision
        await watch.request_progress()
        progress = await watch.next()
        assert (progress.events, progress.header.revision >= elsewhere) == ((), True)
        watch.cancel()
        with pytest.raises((EtcdError, asyncio.CancelledError)):
            await watch.next()

    run(shared_etcd.url, scenario)


def test_large_events_of_one_revision_come_together(etcd: EtcdProcess) -> None:
    """etcd splits what is larger than 1.5 MiB; one transaction of 1.4 MiB and two swaps are read as three revisions."""

    async def scenario(client: Client) -> None:
        value = b"v" * 700_000
        puts = tuple(RequestOp(request_put=PutRequest(name, value)) for name in (b"/a", b"/b"))
        first = (await client.txn(TxnRequest(success=puts))).header.revision
        for expected in (first, first + 1):
            assert (await swap(client, "/a", expected, value * 2)).succeeded
        watch = await client.watch(WatchCreateRequest(b"/", b"0", first, fragment=True))
        seen: list[int] = []
        while len(seen) < 4:
            events = (await watch.next()).events
            assert not seen or seen[-1] < events[0].kv.mod_revision
            seen += [event.kv.mod_revision for event in events]
        assert seen == [first, first, first + 1, first + 2]

    run(etcd.url, scenario)


def test_a_lease_ends_with_its_keys(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario(client: Client) -> None:
        lease = await client.grant(600)
        await swap(client, f"{prefix}a", 0, b"v", lease.id)
        assert await client.keep_alive(lease.id) == 600
        (stored,) = (await client.range(everything(prefix))).kvs
        assert stored.lease == lease.id
        await client.revoke(lease.id)
        assert (await client.range(everything(prefix))).kvs == ()
        assert await client.keep_alive(lease.id) == 0
        with pytest.raises(LeaseNotFound):
            await client.revoke(lease.id)

    run(shared_etcd.url, scenario)


def test_the_members_and_their_states(shared_etcd: EtcdProcess) -> None:
    async def scenario(client: Client) -> None:
        status = await client.status()
        (member,) = (await client.members()).members
        assert (status.leader, member.client_urls) == (member.id, (shared_etcd.url,))
        nowhere = f"http://127.0.0.1:{free_port()}"
        states = await Client.of([shared_etcd.url, nowhere]).statuses()
        assert (type(states[shared_etcd.url]), type(states[nowhere])) == (type(status), NoConnection)

    run(shared_etcd.url, scenario)


def test_a_compacted_history_and_the_future(etcd: EtcdProcess) -> None:
    async def scenario(client: Client) -> None:
        revisions = [0]
        for _ in range(5):
            revisions.append((await swap(client, "/a", revisions[-1], b"v")).header.revision)
        await client.compact(revisions[4])
        with pytest.raises(RevisionCompacted):
            await client.range(RangeRequest(b"/a", revision=revisions[3]))
        with pytest.raises(RevisionCompacted):
            await client.compact(revisions[3])
        watch = await client.watch(WatchCreateRequest(b"/a", start_revision=revisions[2]))
        with pytest.raises(RevisionCompacted) as refused:
            await watch.next()
        assert refused.value.compact_revision == revisions[4]
        with pytest.raises(FutureRevision):
            await client.range(RangeRequest(b"/a", revision=revisions[-1] + 1))

    run(etcd.url, scenario)


def test_requests_that_etcd_refuses(shared_etcd: EtcdProcess, prefix: str) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(TooLarge, match="request is too large"):
            await swap(client, prefix, 0, b"v" * 1_600_000)
        with pytest.raises(Refused, match="key is not provided"):
            await client.range(RangeRequest())

    run(shared_etcd.url, scenario)


def test_a_full_database(new_etcd: NewEtcd) -> None:
    async def fill(client: Client) -> None:
        async with asyncio.timeout(60):  # etcd looks at the size from time to time
            for number in itertools.count():
                await swap(client, f"/{number}", 0, b"v" * 500_000)

    with new_etcd("--quota-backend-bytes=4000000") as etcd, pytest.raises(NoSpace, match="database space exceeded"):
        run(etcd.url, fill)


def test_a_paused_etcd_is_waited_for_as_long_as_the_deadline(etcd: EtcdProcess) -> None:
    async def scenario(client: Client) -> None:
        await client.status()
        etcd.pause()
        with pytest.raises(TimedOut, match=r"did not respond within 0\.3 seconds"):
            await client.range(RangeRequest(b"/a"), timeout=0.3)
        etcd.resume()
        await client.range(RangeRequest(b"/a"))

    run(etcd.url, scenario)


def test_a_killed_etcd_breaks_requests_and_comes_back(etcd: EtcdProcess) -> None:
    async def scenario(client: Client) -> None:
        revision = (await swap(client, "/a", 0, b"v")).header.revision
        watch = await client.watch(WatchCreateRequest(b"/a"))
        await asyncio.to_thread(etcd.kill)
        with pytest.raises(UnknownOutcome):
            await watch.next()
        with pytest.raises((NoConnection, UnknownOutcome), match=r"can't be reached: connection refused|was lost"):
            await swap(client, "/a", revision, b"w")
        await asyncio.to_thread(etcd.start)
        stored = await eventually(lambda: client.range(RangeRequest(b"/a")))
        assert stored.kvs[0].mod_revision == revision

    run(etcd.url, scenario)


async def eventually(attempt: Callable[[], Awaitable[Result]]) -> Result:
    """Returns the result of the first attempt that succeeds. Connections pause between their own attempts."""
    async with asyncio.timeout(30):
        while True:
            with suppress(EtcdError):
                return await attempt()
            await asyncio.sleep(0.05)


@pytest.fixture
def members(new_etcd: NewEtcd) -> Iterator[list[EtcdProcess]]:
    """Three members of one cluster, which run."""
    ports = {name: free_port() for name in "abc"}
    peers = ",".join(f"{name}=http://127.0.0.1:{port}" for name, port in ports.items())
    with ExitStack() as stack:
        processes = []
        for name, port in ports.items():
            peer = f"http://127.0.0.1:{port}"
            flags = (f"--name={name}", f"--initial-cluster={peers}", f"--listen-peer-urls={peer}")
            processes.append(stack.enter_context(new_etcd(*flags, f"--initial-advertise-peer-urls={peer}", wait=False)))
        for process in processes:
            process.wait_until_ready()
        yield processes


@pytest.mark.slow  # a member that has lost the others gives up after seven seconds
def test_another_member_takes_over_and_two_are_needed(members: list[EtcdProcess]) -> None:
    async def scenario(client: Client) -> None:
        first = await eventually(client.status)
        revision = (await eventually(lambda: swap(client, "/a", 0, b"v"))).header.revision
        serving = next(member for member in members if member.url == client.url)
        await asyncio.to_thread(serving.kill)
        stored = await eventually(lambda: client.range(RangeRequest(b"/a")))
        assert (stored.kvs[0].mod_revision, client.url != serving.url) == (revision, True)
        assert (await eventually(lambda: swap(client, "/a", revision, b"w"))).succeeded
        other = next(member for member in members if member.url == client.url)
        await asyncio.to_thread(other.kill)
        with pytest.raises((NoQuorum, UnknownOutcome)):
            await client.range(RangeRequest(b"/a"), timeout=9)
        assert first.version

    run([member.url for member in members], scenario)


class Certificates:
    """A CA with the certificates of an etcd and of a client, as files."""

    def __init__(self, folder: Path) -> None:
        authority = certificates.create_authority()
        certificates.save(folder, "ca", authority)
        certificates.save(folder, "server", certificates.issue_server(authority, ["127.0.0.1"]))
        certificates.save(folder, "client", certificates.issue_client(authority, "apiserver"))
        certificates.save(folder, "other", certificates.create_authority())
        self.folder = folder

    def files(self, ca: str = "ca", client: str = "client") -> TLSFiles:
        own = {"certfile": self.path(f"{client}.crt"), "keyfile": self.path(f"{client}.key")} if client else {}
        return TLSFiles(cafile=self.path(f"{ca}.crt"), **own)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def flags(self) -> list[str]:
        return [
            *(f"--{name}-client-urls=https://127.0.0.1:{{port:client}}" for name in ("listen", "advertise")),
            f"--cert-file={self.path('server.crt')}",
            f"--key-file={self.path('server.key')}",
            f"--trusted-ca-file={self.path('ca.crt')}",
            "--client-cert-auth",
        ]


def test_tls_with_certificates_of_both_sides_and_wrong_ones(new_etcd: NewEtcd, tmp_path: Path) -> None:
    pairs = Certificates(tmp_path)
    with new_etcd(*pairs.flags()) as etcd:
        secure = etcd.url.replace("http:", "https:")
        run(secure, lambda client: client.status(), files=pairs.files())
        for url, files, reason in (
            (secure, pairs.files(ca="other"), "certificate of .* is not trusted: .*--etcd-cafile"),
            (secure, pairs.files(client=""), "refuses this client's certificate, or its absence"),
            (secure, pairs.files(client="other"), "refuses this client's certificate"),
            (etcd.url, TLSFiles(), "uses TLS: write https://"),
        ):
            with pytest.raises(NoConnection, match=reason):
                run(url, lambda client: client.status(), files=files)


def test_https_for_an_etcd_without_tls(shared_etcd: EtcdProcess) -> None:
    with pytest.raises(NoConnection, match="does not use TLS: write http://"):
        run(shared_etcd.url.replace("http:", "https:"), lambda client: client.status())


def test_the_library_is_named_if_it_is_missing() -> None:
    code = """
import asyncio, sys
sys.modules["grpc"] = None
from fakeapiserver.storage.etcd.client import Client
async def main():
    await Client.of(["http://127.0.0.1:1"]).status()
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("pip install 'fakeapiserver[etcd]'"), done.stderr
