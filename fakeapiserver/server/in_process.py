"""A client's requests to the server of its own process: no sockets, no HTTP, the same handler chain."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final
from urllib.parse import unquote

from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.client.config import RESTConfig
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.clock import Clock
from fakeapiserver.controller_manager.clients import identity_of
from fakeapiserver.endpoints.request import AS_CLIENT, IN_PROCESS_USER, ASGIApplication, Message
from fakeapiserver.transport.key_pair import KeyPair
from fakeapiserver.transport.round_trip import TransportError

# So many chunks of a watch wait for their reader; then the server's own bounded buffer fills.
_MAX_CHUNKS: Final = 64
# A controller may ask for 500 things at once. Priority and fairness would refuse most, and each would be tried again after a second:
# the rest waits here, as it does for a free stream of an HTTP/2 connection.
_MAX_REQUESTS: Final = 100


class Turns:
    """Begins the requests of clients in this process, in their order, one in each turn of the event loop.

    A controller may send hundreds of requests at once. Clients at sockets wait for one of them at most, not for all.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def next(self) -> None:
        """Returns when the requests before it have begun, in a turn of its own."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._begin)
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _begin(self) -> None:
        turn = self._waiting.popleft()
        if not turn.done():
            turn.set_result(None)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._begin)


class InProcessClients:
    """A ClientBuilder whose clients call `application` as their user, without credentials.

    `in_flight`: the number of requests whose response isn't complete, without watches.
    """

    def __init__(self, application: ASGIApplication, url: str, clock: Clock) -> None:
        self._application = application
        self._config = RESTConfig(url)
        self._clock = clock
        self._clients: dict[str, RESTClient] = {}
        self._turns = Turns()
        self.in_flight = 0

    def client(self, account: str) -> RESTClient:
        """See ClientBuilder."""
        if account not in self._clients:
            name, groups, agent = identity_of(account)
            user = UserInfo(name, groups=(*groups, "system:authenticated"))
            transport = InProcessRoundTripper(self._application, user, self._counted, turns=self._turns)
            self._clients[account] = RESTClient(self._config.with_(user_agent=agent), transport, self._clock)
        return self._clients[account]

    def close(self) -> None:
        """Breaks off what still goes on."""
        for client in self._clients.values():
            client.close()

    def _counted(self, change: int) -> None:
        self.in_flight += change


class InProcessRoundTripper:
    """A RoundTripper that calls `application`, which must run in the same event loop, as `user`.

    `as_client`: the user is no part of the cluster. `counted` is called with +1 when a request other than a watch begins and with -1 when
    its response is complete. At most 100 requests run at once. `turns`: shared by clients of one server; by default the client's own.
    """

    def __init__(
        self,
        application: ASGIApplication,
        user: UserInfo,
        counted: Callable[[int], None],
        *,
        as_client: bool = False,
        turns: Turns | None = None,
    ) -> None:
        self._marks: Message = {IN_PROCESS_USER: user, **({AS_CLIENT: True} if as_client else {})}
        self._application = application
        self._exchanges: set[_Exchange] = set()
        self._free = asyncio.Semaphore(_MAX_REQUESTS)
        self.turns = turns or Turns()
        self.counted = counted

    async def round_trip(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes, certificate: KeyPair | None
    ) -> "_Exchange":
        """TransportError: the server broke off."""
        path, _, query = target.partition("?")
        scope: Message = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [
                (b"host", b"localhost"),
                *((key.lower().encode(), value.encode("latin-1", "replace")) for key, value in headers),
                (b"content-length", b"%d" % len(body)),
            ],
            "client": ("127.0.0.1", 0),
            "server": ("127.0.0.1", 0),
            "extensions": {},
            **self._marks,
        }
        watching = "watch=true" in query
        if not watching:
            await self._free.acquire()
        exchange = _Exchange(self, body, watching=watching)
        self._exchanges.add(exchange)
        exchange.start(self._application, scope)
        try:
            await exchange.begun
        except BaseException:
            await exchange.finish()
            raise
        return exchange

    def close(self) -> None:
        """Breaks off what still goes on."""
        for exchange in [*self._exchanges]:
            exchange.cancel()

    def ended(self, exchange: "_Exchange") -> None:
        self._exchanges.discard(exchange)
        if not exchange.watching:
            self._free.release()


class _Exchange:
    """A request and its response (a client's Answer)."""

    def __init__(self, transport: InProcessRoundTripper, body: bytes, *, watching: bool) -> None:
        self._transport = transport
        self._body: bytes | None = body
        self.watching = watching
        self._gone = asyncio.Event()
        self._complete = False
        self._broken = False
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(_MAX_CHUNKS)
        self._task: asyncio.Task[None] | None = None
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []

    def start(self, application: ASGIApplication, scope: Message) -> None:
        if not self.watching:
            self._transport.counted(1)
        self._task = asyncio.ensure_future(self._exchange(application, scope))
        self._task.add_done_callback(self._done)

    async def _exchange(self, application: ASGIApplication, scope: Message) -> None:
        if not self.watching:  # a watch has to begin before its client can miss anything
            await self._transport.turns.next()
        await application(scope, self._receive, self._send)

    def _done(self, task: "asyncio.Task[None]") -> None:
        if not self.watching:
            self._transport.counted(-1)
        self._transport.ended(self)
        error = None if task.cancelled() else task.exception()
        if not self.begun.done():
            self.begun.set_exception(TransportError(f"the server gave no answer: {error or 'it stops'}"))
        elif not self._complete:
            self._broken = True
            if self._chunks.empty():
                self._chunks.put_nowait(None)

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], [*message["headers"]]
            if not self.begun.done():
                self.begun.set_result(None)
        elif message["type"] == "http.response.body":
            if body := message.get("body"):
                await self._chunks.put(body)
            if not message.get("more_body"):
                self._complete = True
                await self._chunks.put(None)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. TransportError when it breaks off."""
        while not (self._broken and self._chunks.empty()):
            chunk = await self._chunks.get()
            if chunk is None:
                break
            yield chunk
        if self._broken:
            raise TransportError("the server broke off", reset=True)

    async def body(self) -> bytes:
        """All of it."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def finish(self) -> None:
        """Ends the exchange, and cancels the handler if the response isn't complete."""
        self._gone.set()
        if self._task is not None and not self._task.done():
            if not self._complete:
                self._task.cancel()
            await asyncio.wait((self._task,))

    def cancel(self) -> None:
        self._gone.set()
        if self._task is not None:
            self._task.cancel()
