"""A second server of ours behind the first one, as an aggregated API server: identities, discovery, reads, writes, watches."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster
from fakeapiserver.server.options.config import Config

from .trust import TRUST, whom_to_believe

Json = dict[str, Any]
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = "v1.far.example.com"
GEARS = "/apis/far.example.com/v1/namespaces/default/gears"
GEARS_PATH = "/apis/far.example.com/v1/namespaces/{namespace}/gears"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gears.far.example.com"},
    "spec": {
        "group": "far.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gears", "kind": "Gear", "shortNames": ["gr"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"teeth": {"type": "integer"}}}},
            }
        ],
    },
}


def send(client: Client, method: str, path: str, body: Any = None, **more: Any) -> Json:
    found: Json = client.send(
        {"method": method, "path": path, **more} | ({"body": body} if body is not None else {}), []
    )
    return found


def api_service(port: int, **over: Any) -> Json:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": NAME},
        "spec": {
            "group": "far.example.com",
            "version": "v1",
            "groupPriorityMinimum": 1500,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"name": "far", "namespace": "default", "port": port},
            **over,
        },
    }


def external(port: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "far"},
        "spec": {"type": "ExternalName", "externalName": "127.0.0.1", "ports": [{"port": port}]},
    }


def watched(near: Cluster, path: str, until: Callable[[Json], bool]) -> Json:
    """The first object below `path` that is as wanted, now or by a watch of which nothing comes for 100 s."""
    context = ssl.create_default_context(cadata=near.ca.decode())
    port = int(near.url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=100) as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as connection,
    ):
        head = f"GET {path}?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {near.token}\r\n\r\n"
        connection.sendall(head.encode())
        for line in connection.makefile("rb"):
            if line.startswith(b"{"):
                obj: Json = json.loads(line)["object"]
                if until(obj):
                    return obj
    raise AssertionError(f"the watch of {path} ended")


def is_available(obj: Json) -> bool:
    conditions = obj.get("status", {}).get("conditions", [])
    return obj["metadata"]["name"] == NAME and [row["status"] for row in conditions] == ["True"]


class Pair(NamedTuple):
    near: Cluster
    client: Client
    far: Client


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Starts two servers. The far one trusts the authorities and users in the near one's ConfigMap for aggregated servers."""
    folder: Path = tmp_path_factory.mktemp("front-proxy")
    with Cluster(controllers=()) as near:
        client = Client(near.url, near.token)
        told = whom_to_believe(client)
        data = told["body"]["data"]
        (folder / "ca.crt").write_text(data["requestheader-client-ca-file"])
        config = Config(
            requestheader_client_ca_file=folder / "ca.crt",
            requestheader_allowed_names=tuple(json.loads(data["requestheader-allowed-names"])),
            requestheader_username_headers=tuple(json.loads(data["requestheader-username-headers"])),
            requestheader_uid_headers=tuple(json.loads(data["requestheader-uid-headers"])),
            requestheader_group_headers=tuple(json.loads(data["requestheader-group-headers"])),
            requestheader_extra_headers_prefix=tuple(json.loads(data["requestheader-extra-headers-prefix"])),
        )
        with Cluster.from_config(config) as other:
            far = Client(other.url, other.token)
            port = int(other.url.rpartition(":")[2])
            send(far, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
            send(client, "POST", "/api/v1/namespaces/default/services", external(port))
            send(client, "POST", API_SERVICES, api_service(port))
            watched(near, API_SERVICES, is_available)
            yield Pair(near, client, far)


def test_its_condition_reports_that_it_answers(pair: Pair) -> None:
    (condition,) = send(pair.client, "GET", f"{API_SERVICES}/{NAME}")["body"]["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("Passed", "all checks passed")


def test_the_metrics_report_availability(pair: Pair) -> None:
    text = send(pair.client, "GET", "/metrics", accept="text/plain")["text"]
    assert f'aggregator_unavailable_apiservice{{name="{NAME}"}} 0.0' in text
    gone = api_service(1) | {"metadata": {"name": "v2.far.example.com"}}
    gone["spec"] = gone["spec"] | {"version": "v2", "service": {"name": "gone", "namespace": "default"}}
    send(pair.client, "POST", API_SERVICES, gone)
    text = send(pair.client, "GET", "/metrics", accept="text/plain")["text"]
    send(pair.client, "DELETE", f"{API_SERVICES}/v2.far.example.com")
    assert 'aggregator_unavailable_apiservice{name="v2.far.example.com"} 1.0' in text


def test_objects_live_in_the_far_server(pair: Pair) -> None:
    gear = {"apiVersion": "far.example.com/v1", "kind": "Gear", "metadata": {"name": "a"}, "teeth": 3}
    assert send(pair.client, "POST", GEARS, gear)["status"] == 201
    assert send(pair.far, "GET", f"{GEARS}/a")["body"]["teeth"] == 3
    assert send(pair.client, "POST", GEARS, gear)["body"]["reason"] == "AlreadyExists"
    grown = send(pair.client, "PATCH", f"{GEARS}/a", {"teeth": 4}, type="application/merge-patch+json")
    assert grown["body"]["teeth"] == 4
    assert [item["metadata"]["name"] for item in send(pair.client, "GET", GEARS)["body"]["items"]] == ["a"]
    invalid = send(pair.client, "PATCH", f"{GEARS}/a", {"teeth": "x"}, type="application/merge-patch+json")
    assert invalid["status"] == 422
    assert send(pair.client, "DELETE", f"{GEARS}/a")["status"] == 200
    assert send(pair.far, "GET", f"{GEARS}/a")["status"] == 404


def test_a_watch_is_not_held_back(pair: Pair) -> None:
    gear = {"apiVersion": "far.example.com/v1", "kind": "Gear", "metadata": {"name": "seen"}}
    writer = threading.Thread(target=send, args=(pair.far, "POST", GEARS, gear))
    writer.start()
    seen = watched(pair.near, GEARS, lambda obj: obj["metadata"]["name"] == "seen")
    writer.join()
    assert seen["kind"] == "Gear"
    send(pair.far, "DELETE", f"{GEARS}/seen")


def test_the_far_server_judges_the_user_that_the_near_one_knows(pair: Pair) -> None:
    """Front-proxy headers of a client are ignored: the far server authorizes the user that the near server knows."""
    allowed = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "far"},
        "rules": [{"apiGroups": ["far.example.com"], "resources": ["*"], "verbs": ["*"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "far"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "far"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for obj, path in ((allowed, "clusterroles"), (binding, "clusterrolebindings")):
        send(pair.client, "POST", f"{rbac}/{path}", obj)
    as_ann = {
        "headers": {"Impersonate-User": "ann", "X-Remote-User": "system:admin", "X-Remote-Group": "system:masters"}
    }
    refused = send(pair.client, "GET", GEARS, **as_ann)
    assert refused["status"] == 403
    assert 'User "ann" cannot list resource "gears"' in refused["body"]["message"]
    for obj, path in ((allowed, "clusterroles"), (binding, "clusterrolebindings")):
        send(pair.far, "POST", f"{rbac}/{path}", obj)
    assert send(pair.client, "GET", GEARS, **as_ann)["status"] == 200


def test_its_resources_are_in_every_discovery_document(pair: Pair) -> None:
    (resource,) = send(pair.client, "GET", "/apis/far.example.com/v1")["body"]["resources"]
    assert resource["shortNames"] == ["gr"]
    accept = {"headers": {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}}

    def versions(found: Json) -> list[Json]:
        items = [item for item in found["body"]["items"] if item["metadata"]["name"] == "far.example.com"]
        return [version for item in items for version in item["versions"]]

    def is_asked(found: Json) -> bool:  # which takes a moment, and goes on beside requests
        return [version["freshness"] for version in versions(found)] == ["Current"]

    (version,) = versions(until(pair.client, "/apis", is_asked, **accept))
    groups = [row["name"] for row in send(pair.client, "GET", "/apis")["body"]["groups"]]
    assert groups[-1] == "far.example.com"
    assert [row["resource"] for row in version["resources"]] == ["gears"]


def test_the_far_server_trusts_no_other_client(pair: Pair) -> None:
    """Without the front proxy's certificate headers are only headers."""
    claimed = send(pair.far, "GET", GEARS, token="", headers={"X-Remote-User": "ann"})
    assert claimed["status"] == 403
    assert 'User "system:anonymous"' in claimed["body"]["message"]


def until(client: Client, path: str, wanted: Callable[[Json], bool], **more: Any) -> Json:
    """The first answer that is as wanted, of the next 100 s."""
    end = time.monotonic() + 100
    found = send(client, "GET", path, **more)
    while not wanted(found):
        assert time.monotonic() < end, found
        found = send(client, "GET", path, **more)
    return found


def test_its_openapi_documents_are_among_this_servers(pair: Pair) -> None:
    document = until(pair.client, "/openapi/v3/apis/far.example.com/v1", lambda found: found["status"] == 200)
    assert "com.example.far.v1.Gear" in document["body"]["components"]["schemas"]
    index = send(pair.client, "GET", "/openapi/v3")["body"]["paths"]
    assert index["apis/far.example.com/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/far.example.com/v1?hash=")
    own = send(pair.client, "GET", "/openapi/v3/apis/apps/v1")
    assert send(pair.far, "GET", "/openapi/v3/apis/apps/v1")["body"] == own["body"]
    merged = until(pair.client, "/openapi/v2", lambda found: GEARS_PATH in found["body"]["paths"])
    assert "com.example.far.v1.Gear" in merged["body"]["definitions"]


def test_nothing_is_left_of_a_deleted_service_and_a_restored_state_brings_it_back(pair: Pair) -> None:
    accept = {"headers": {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}}

    def lists(found: Json) -> bool:
        return any(item["metadata"]["name"] == "far.example.com" for item in found["body"]["items"])

    until(pair.client, "/openapi/v3/apis/far.example.com/v1", lambda found: found["status"] == 200)
    state = pair.near.snapshot()
    send(pair.client, "DELETE", f"{API_SERVICES}/{NAME}")
    assert send(pair.client, "GET", GEARS)["status"] == 404
    assert send(pair.client, "GET", "/apis/far.example.com")["status"] == 404
    until(pair.client, "/apis", lambda found: not lists(found), **accept)
    until(pair.client, "/openapi/v3/apis/far.example.com/v1", lambda found: found["status"] == 404)
    pair.near.restore(state)
    assert send(pair.client, "GET", GEARS)["status"] == 200
    until(pair.client, "/apis", lists, **accept)
    without = pair.near.snapshot()
    send(pair.client, "DELETE", f"{API_SERVICES}/{NAME}")
    gone = pair.near.snapshot()
    pair.near.restore(without)
    pair.near.restore(gone)
    until(pair.client, "/apis", lambda found: not lists(found), **accept)
    pair.near.restore(state)  # others come after this
    watched(pair.near, API_SERVICES, is_available)
    until(pair.client, "/apis", lists, **accept)


def test_the_trust_config_map_is_published_again_when_it_is_deleted(pair: Pair) -> None:
    told = send(pair.client, "GET", TRUST)["body"]["data"]
    send(pair.client, "DELETE", TRUST)
    assert until(pair.client, TRUST, lambda found: found["status"] == 200)["body"]["data"] == told
