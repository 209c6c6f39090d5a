"""Connections to other servers."""

import asyncio
import socket

from fakeapiserver.transport.round_trip import Target, Transport


def test_a_quiet_peer_is_asked_whether_it_is_there() -> None:
    async def scenario() -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            connection = await Transport().connect(Target("127.0.0.1", port, "127.0.0.1", plain=True))
            found = connection.writer.get_extra_info("socket")
            assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            if hasattr(socket, "TCP_KEEPIDLE"):
                assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
            connection.close()

    asyncio.run(scenario())
