"""Tests how aggregated discovery includes the documents of a remote server."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apis.resource_table import RemoteVersion
from fakeapiserver.apis.scheme import Priority
from fakeapiserver.clock import SystemClock
from fakeapiserver.server.aggregator.api_services import APIServices, RemoteService, ServiceReference
from fakeapiserver.server.aggregator.discovery import DiscoveryManager, resources_of
from fakeapiserver.server.aggregator.proxy import Proxy
from fakeapiserver.server.aggregator.work_queue import Retry
from fakeapiserver.transport.round_trip import Answer

GV = GroupVersion("a.example.com", "v1")
SERVICE = RemoteService("v1.a.example.com", GV, Priority(1, 1), ServiceReference("n", "s", 443), b"", False, True)
LIST = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KIND = {"group": "", "version": "", "kind": "Gear"}
NO_KIND = {"group": "", "version": "", "kind": ""}


def published(*answers: tuple[int, bytes, bytes]) -> tuple[Mapping[str, Any], bool]:
    """The document that is shown, and whether it was found: status, Content-Type and body of the server's answers in turn."""
    shown: dict[GroupVersion, RemoteVersion] = {}
    waiting = list(answers)

    class Server:
        async def fetch(self, *_: Any) -> tuple[Answer, bytes]:
            status, media_type, body = waiting.pop(0)
            unread = cast(Any, None)
            return Answer(status, "", [(b"Content-Type", media_type)], unread, unread), body

    services = cast(APIServices, SimpleNamespace(remote={SERVICE.name: SERVICE}))
    manager = DiscoveryManager(services, cast(Proxy, Server()), SystemClock(), shown.update)
    try:
        asyncio.run(manager.sync(SERVICE.name))
    except Retry:
        return shown[GV].document, False
    return shown[GV].document, True


@pytest.mark.parametrize(
    "body",
    [
        b"x",
        b"[]",
        b"5",
        b'{"items": 5}',
        b'{"items": [5]}',
        b'{"items":[{"metadata":{"name":"b"},"versions":[{"resources":"x"}]}]}',
    ],
)
def test_what_is_no_document_makes_it_stale(body: bytes) -> None:
    assert published((200, LIST, body)) == ({"version": "v1", "freshness": "Stale"}, False)


@pytest.mark.parametrize("body", [b"", b"null", b'{"resources": [{}]}', b'{"resources": [{"name": 5}]}'])
def test_so_does_an_older_servers_invalid_list(body: bytes) -> None:
    assert published((404, b"", b""), (200, b"application/json", body)) == (
        {"version": "v1", "freshness": "Stale"},
        False,
    )


def test_a_server_that_has_no_document_of_the_group_version_serves_nothing_in_it() -> None:
    assert published((200, LIST, b'{"items": []}')) == ({"version": "v1", "freshness": "Current"}, True)


def test_a_server_without_aggregated_discovery_is_asked_for_its_list() -> None:
    body = b'{"resources": [{"name": "gears", "kind": "Gear", "namespaced": true, "verbs": ["get"]}]}'
    document, found = published((406, b"", b""), (200, b"application/json", body))
    (resource,) = document["resources"]
    assert found
    assert resource == {
        "resource": "gears",
        "responseKind": KIND,
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": ["get"],
    }


def test_a_subresource_without_a_resource_gets_one() -> None:
    (resource,) = resources_of([{"name": "gears/status", "kind": "Gear", "verbs": ["get"]}])
    assert (resource["resource"], resource["scope"], resource["responseKind"]) == ("gears", "Cluster", NO_KIND)
    assert resource["subresources"] == [{"subresource": "status", "responseKind": KIND, "verbs": ["get"]}]


def test_a_subresource_of_another_scope_is_an_error() -> None:
    with pytest.raises(ValueError, match="scopes of gears and gears/status"):
        resources_of([{"name": "gears", "namespaced": True}, {"name": "gears/status"}])
