"""Asks a server in the background, found by its name, over HTTP: for `faults` and other commands that act on one."""

import asyncio
from typing import Any, Final

import msgspec

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.cli import background
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.transport.kubeconfigs import clientcmd
from fakeapiserver.transport.round_trip import TransportError

_PREFIX: Final = "/fakeapiserver"
_TIMED_OUT: Final = 504


class RemoteError(Exception):
    """No such server runs, or it refuses; the text is one sentence."""


class RemoteTimeout(RemoteError):
    """The server was asked to wait for something that did not happen in time."""


def ask(server: str, method: str, path: str, body: Any = None) -> Any:
    """Sends a request to the test control of a server and returns the answer's JSON, or None if the answer has no body.

    `server`: its name, "" for the default one. `path` is below /fakeapiserver. Raises RemoteError, and UsageError for a wrong name.
    """
    data = msgspec.json.encode(body) if body is not None else None
    answer = ask_bytes(server, method, path, data)
    return msgspec.json.decode(answer) if answer else None


def ask_bytes(server: str, method: str, path: str, data: bytes | None = None) -> bytes:
    """Sends bytes as `ask` does, and returns the bytes of the answer."""
    name = server or background.DEFAULT_NAME
    facts = background.Server(name).facts()
    if facts is None:
        raise RemoteError(f"no server {name!r} runs: start it with fakeapiserver serve --background --name={name}")
    try:
        return asyncio.run(_sent(facts["kubeconfig"], method, _PREFIX + path, data))
    except StatusError as error:
        raise (RemoteTimeout if error.code == _TIMED_OUT else RemoteError)(error.message) from None
    except TransportError as error:
        raise RemoteError(f"the server {name!r} doesn't answer: {error}") from None


async def _sent(kubeconfig: str, method: str, path: str, body: bytes | None) -> bytes:
    async with RESTClient(clientcmd.rest_config(clientcmd.read(kubeconfig))) as rest:
        return (await rest.request(method, path, body=body)).body
