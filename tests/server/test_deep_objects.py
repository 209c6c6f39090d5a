"""Free fields of custom resources are as deep as kube-apiserver 1.37.2 takes them, for each verb, form and kind of patch."""

import json
import re
import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection
from urllib.parse import urlsplit

import pytest

from fakeapiserver.testing.background import running_server

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEEPS = "/apis/d.example.com/v1/deeps"
DEEPEST = 9990
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "metadata": {"name": "deeps.d.example.com"},
    "spec": {
        "group": "d.example.com",
        "scope": "Cluster",
        "names": {"plural": "deeps", "kind": "Deep"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": FREE}}},
            }
        ],
    },
}
REVISION = re.compile('"resourceVersion":"([0-9]+)"')
DEPTHS = [1500, pytest.param(DEEPEST, marks=pytest.mark.slow)]
# What a level is opened and closed with.
LEVELS = [("{{{}:", "}"), ("[", "]")]


class Server:
    def __init__(self, url: str, token: str) -> None:
        self._place, self._token = urlsplit(url), token

    def send(self, method: str, path: str, body: str = "", kind: str = "json", accept: str = "json") -> tuple[int, str]:
        """Sends a request and returns the status and the text of its answer."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = HTTPSConnection(self._place.hostname or "", self._place.port, context=context, timeout=120)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": f"application/{kind}"}
        try:
            connection.request(method, path, body or None, headers | {"Accept": f"application/{accept}"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def status(self, method: str, path: str, body: str = "", kind: str = "json") -> int:
        return self.send(method, path, body, kind)[0]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as found:
        server = Server(found.url, found.admin_token)
        assert server.status("POST", DEFINITIONS, json.dumps(DEFINITION)) == 201
        yield server


def nested(levels: tuple[str, str], depth: int, leaf: int = 1, key: str = '"a"') -> str:
    opening, closing = levels[0].replace("{{{}", "{" + key), levels[1]
    return opening * depth + str(leaf) + closing * depth


def deep(name: str, value: str, metadata: str = "") -> str:
    about = f'"apiVersion":"d.example.com/v1","kind":"Deep","metadata":{{"name":"{name}"{metadata}}}'
    return f'{{{about},"spec":{{"v":{value}}}}}'


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("levels", LEVELS, ids=["maps", "lists"])
def test_a_deep_object_is_written_read_and_patched(server: Server, levels: tuple[str, str], depth: int) -> None:
    value, path = nested(levels, depth), f"{DEEPS}/a"
    assert server.status("POST", DEEPS, deep("a", value)) == 201
    code, stored = server.send("GET", path)
    assert (code, f'"spec":{{"v":{value}}}' in stored) == (200, True)
    assert f'"spec":{{"v":{value}}}' in server.send("GET", DEEPS)[1]
    assert f'"spec":{{"v":{value}}}' in server.send("GET", f"{DEEPS}?watch=1&timeoutSeconds=1")[1]
    revision = REVISION.search(stored)
    assert revision
    other = nested(levels, depth, leaf=2)
    about = f',"resourceVersion":"{revision[1]}"'
    code, updated = server.send("PUT", path, deep("a", other, about))
    assert (code, f'"spec":{{"v":{other}}}' in updated) == (200, True)
    code, merged = server.send("PATCH", path, f'{{"spec":{{"w":{value}}}}}', "merge-patch+json")
    assert (code, f'"spec":{{"v":{other},"w":{value}}}' in merged) == (200, True)
    steps = [
        f'{{"op":"test","path":"/spec/w","value":{value}}}',
        '{"op":"copy","from":"/spec/w","path":"/spec/x"}',
        '{"op":"remove","path":"/spec/w"}',
    ]
    code, patched = server.send("PATCH", path, f"[{','.join(steps)}]", "json-patch+json")
    assert (code, f'"spec":{{"v":{other},"x":{value}}}' in patched) == (200, True)
    assert server.status("DELETE", path) == 200
    assert server.status("GET", path) == 404


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("levels", LEVELS, ids=["maps", "lists"])
def test_a_deep_object_is_applied(server: Server, levels: tuple[str, str], depth: int) -> None:
    path, kind = f"{DEEPS}/b", "apply-patch+yaml"
    applied = deep("b", nested(levels, depth))
    assert server.status("PATCH", f"{path}?fieldManager=one", applied, kind) == 201
    assert server.status("PATCH", f"{path}?fieldManager=two", applied, kind) == 200
    code, refused = server.send("PATCH", f"{path}?fieldManager=three", deep("b", nested(levels, depth, leaf=2)), kind)
    field = ".spec.v" + ".a" * depth if levels[1] == "}" else ".spec.v"
    assert (code, refused.count(f"- {field}\\n"), "Apply failed with 2 conflicts" in refused) == (409, 1, True)
    assert server.status("PATCH", f"{path}?fieldManager=one", deep("b", nested(levels, 1)), kind) == 409
    assert server.status("DELETE", path) == 200


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("levels", LEVELS, ids=["maps", "lists"])
def test_a_deep_object_is_yaml(server: Server, levels: tuple[str, str], depth: int) -> None:
    value = nested(levels, depth, key="a").replace(":", ": ")
    text = f"apiVersion: d.example.com/v1\nkind: Deep\nmetadata: {{name: c}}\nspec: {{v: {value}}}\n"
    code, stored = server.send("POST", DEEPS, text, "yaml")
    assert (code, f'"spec":{{"v":{nested(levels, depth)}}}' in stored) == (201, True)
    if levels[1] == "]":  # maps of 9,990 levels are 300 MB of blanks
        assert server.send("GET", f"{DEEPS}/c", accept="yaml")[1].count("- ") >= depth
    assert server.status("DELETE", f"{DEEPS}/c") == 200


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("levels", LEVELS, ids=["maps", "lists"])
def test_a_strategic_merge_patch_may_be_deep(server: Server, levels: tuple[str, str], depth: int) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    name = f"deep{depth}{'m' if levels == LEVELS[0] else 'l'}"
    assert server.status("POST", maps, json.dumps({"metadata": {"name": name}})) == 201
    patch = f'{{"data":{{"a":"b"}},"unknown":{nested(levels, depth - 2)}}}'
    status, text = server.send("PATCH", f"{maps}/{name}", patch, "strategic-merge-patch+json")
    assert (status, json.loads(text).get("data")) == (200, {"a": "b"})


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("json", "couldn't get version/kind; json parse error: invalid character '[' exceeded max depth"),
        ("yaml", "yaml: exceeded max depth of 10000"),
    ],
)
def test_deeper_objects_are_refused(server: Server, kind: str, message: str) -> None:
    code, answer = server.send("POST", DEEPS, deep("d", nested(LEVELS[1], 10_001)), kind)
    assert (code, message in answer) == (400, True)
