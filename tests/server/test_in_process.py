"""A client of the server's own process."""

import asyncio

from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.request import Message, Receive, Send
from fakeapiserver.server.in_process import InProcessRoundTripper, Turns


def test_who_asks_for_much_at_once_waits_before_the_server_does() -> None:
    """Priority and fairness would refuse what doesn't fit into its queues, and a controller would try again a second later."""
    now, most = 0, 0

    async def application(_: Message, receive: Receive, send: Send) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(200):
            await asyncio.sleep(0)
        now -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def scenario() -> list[bytes]:
        transport = InProcessRoundTripper(application, UserInfo("someone"), lambda _: None)

        async def ask() -> bytes:
            answer = await transport.round_trip("GET", "/api", (), b"", None)
            return await answer.body()

        return await asyncio.gather(*(ask() for _ in range(500)))

    assert asyncio.run(scenario()) == [b"{}"] * 500
    assert most == 100


def test_requests_begin_in_their_order_one_in_each_turn_of_the_event_loop() -> None:
    """Clients at sockets don't wait until the requests of a burst are answered."""
    begun: list[tuple[int, str]] = []

    async def scenario() -> None:
        turn, turns = 0, Turns()

        async def application(scope: Message, receive: Receive, send: Send) -> None:
            begun.append((turn, scope["path"]))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})

        transports = [InProcessRoundTripper(application, UserInfo(name), lambda _: None, turns=turns) for name in "ab"]
        asking = [
            asyncio.ensure_future(transports[number % 2].round_trip("GET", f"/{number}", (), b"", None))
            for number in range(20)
        ]
        while not all(each.done() for each in asking):
            await asyncio.sleep(0)
            turn += 1

    asyncio.run(scenario())
    assert [path for _, path in begun] == [f"/{number}" for number in range(20)]
    assert len({turn for turn, _ in begun}) == 20
