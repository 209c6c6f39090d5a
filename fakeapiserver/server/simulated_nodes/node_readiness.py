"""Waits for the simulated nodes: a server with nodes is ready when pods can be bound to all of them."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct, field

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.server.apiserver import APIServer

log = logging.getLogger(__name__)
_TIMEOUT: Final = 60.0  # seconds, against what hangs
_POLL: Final = 0.005  # seconds
_NOT_READY: Final = "node.kubernetes.io/not-ready"


class _Named(Struct):
    key: str = ""
    type: str = ""
    status: str = ""


class _Spec(Struct):
    taints: list[_Named] = field(default_factory=list)


class _Status(Struct):
    conditions: list[_Named] = field(default_factory=list)


class _Node(Struct):
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)


async def wait_for_nodes(
    api: APIServer, names: Sequence[str], controllers: "asyncio.Task[None]", *, untainted: bool
) -> None:
    """Returns when each node exists and is Ready, with `untainted` also without the taint that new nodes have. Gives up, with a
    warning in the log, after a minute, and at once if the controllers fail."""
    store = api.scopes.store_for(GroupResource("", "nodes"))
    assert store is not None
    missing = list(names)
    deadline = asyncio.get_running_loop().time() + _TIMEOUT
    while not controllers.done():
        while missing and (stored := api.storage.get_now(store.key("", missing[-1]))) is not None:
            if not _is_ready(msgspec.json.decode(stored.value, type=_Node), untainted=untainted):
                break
            missing.pop()
        if not missing:
            return
        if asyncio.get_running_loop().time() > deadline:
            log.warning("%d of %d nodes, among them %s, are not ready", len(missing), len(names), missing[-1])
            return
        await asyncio.sleep(_POLL)


def _is_ready(node: _Node, *, untainted: bool) -> bool:
    if untainted and any(taint.key == _NOT_READY for taint in node.spec.taints):
        return False
    return any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
