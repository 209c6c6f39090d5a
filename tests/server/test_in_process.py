"""A client of the server's own process."""

import asyncio

from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.request import Message, Receive, Send
from fakeapiserver.server.in_process import InProcessRoundTripper


def test_who_asks_for_much_at_once_waits_before_the_server_does() -> None:
    """Priority and fairness would refuse what doesn't fit into its queues, and a controller would try again a second later."""
    now, most = 0, 0

    async def application(_: Message, receive: Receive, send: Send) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
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
