"""Attacks on the live page: markup in every field that a client may choose, and pages of other origins in a browser that is logged in."""

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import quote

import pytest

from fakeapiserver import Cluster
from tests.ui.clients import NamedClient

MARKUP: Final = "<img src=x onerror=window.ran=1><script>window.ran=1</script>"
CORE: Final = "/api/v1/namespaces/default"
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS: Final = "/apis/example.com/v1/namespaces/default/things"
OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
OBJECTS: Final = ("configmaps/default/marked", "pods/default/marked", "things.example.com/default/marked")
VIEWS: Final = (
    *(f"view={view}" for view in ("timeline", "objects", "graph", "why", "levers", "share")),
    "view=objects&kind=things.example.com",
    "view=objects&kind=events",
    *(
        f"view=objects&panel=object&object={ref}&tab={tab}"
        for ref in OBJECTS
        for tab in ("overview", "yaml", "history")
    ),
    f"view={quote(MARKUP)}&object={quote(MARKUP)}&filter={quote(MARKUP)}&query={quote(MARKUP)}&ns={quote(MARKUP)}",
    "view=timeline&panel=changes&range=1-100000",
    *(
        "&".join(
            f"{name}={word}"
            for name in ("view", "panel", "kind", "tab", "axis", "ns", "sort", "moment", "request", "range", "query")
        )
        + f"&object={word}/{word}/{word}"
        for word in ("constructor", "__proto__", "-1", "1e999")
    ),
    *(
        f"view={view}&kind=constructor&object=toString/valueOf/constructor&panel={panel}&tab=constructor&sort=__proto__"
        for view in ("objects", "graph", "timeline")
        for panel in ("object", "constructor")
    ),
)


def marked(cluster: Cluster) -> None:
    """Stores markup wherever the server takes it."""
    client = NamedClient(cluster, MARKUP.replace("/", "|"))

    def send(path: str, body: dict[str, Any]) -> None:
        assert client.send("POST", path, body)["kind"] != "Status", path

    metadata = {"name": "marked", "annotations": {"example.com/note": MARKUP}, "finalizers": ["example.com/stays"]}
    send(f"{CORE}/configmaps", {"metadata": metadata, "data": {"__proto__": MARKUP, "constructor": MARKUP}})
    container = {"name": "c", "image": MARKUP, "command": [MARKUP], "env": [{"name": "A", "value": MARKUP}]}
    send(
        f"{CORE}/pods",
        {"metadata": {"name": "marked", "annotations": {"a": MARKUP}}, "spec": {"containers": [container]}},
    )
    about = {"kind": "Pod", "namespace": "default", "name": "marked"}
    event = {
        "metadata": {"name": "marked.1"},
        "involvedObject": about,
        "reason": MARKUP,
        "message": MARKUP,
        "type": "Warning",
    }
    send(f"{CORE}/events", event)
    columns = [{"name": MARKUP, "type": "string", "jsonPath": ".status.text"}]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}},
        "additionalPrinterColumns": columns,
    }
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    send(DEFINITIONS, {"metadata": {"name": "things.example.com"}, "spec": spec})
    cluster.settle()
    condition = {"type": MARKUP, "status": "False", "reason": MARKUP, "message": MARKUP}
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "marked"}}
    send(THINGS, {**thing, "spec": {MARKUP: MARKUP}, "status": {"text": MARKUP, "conditions": [condition]}})
    client.send("GET", f"{CORE}/configmaps/{quote(MARKUP, safe='')}?{quote(MARKUP)}")
    for number in range(3):
        client.merge(f"{CORE}/configmaps/marked?fieldManager={quote(MARKUP)}", {"data": {"turn": str(number)}})
    client.send(
        "PATCH",
        f"{CORE}/pods/marked",
        {"spec": {"containers": [{"name": MARKUP}]}},
        "application/strategic-merge-patch+json",
    )
    client.send("DELETE", f"{CORE}/configmaps/marked")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["endpoints"], "operations": ["CREATE"]}
    validation = {"expression": "object.metadata.name != 'refused'", "message": MARKUP}
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]}
    send(f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": "marking"}, "spec": policy})
    binding = {"policyName": "marking", "validationActions": ["Deny"]}
    send(f"{ADMISSION}/validatingadmissionpolicybindings", {"metadata": {"name": "marking"}, "spec": binding})
    cluster.settle()
    assert MARKUP in client.send("POST", f"{CORE}/endpoints", {"metadata": {"name": "refused"}})["message"]
    cluster.faults.add(verb="get", resource="configmaps", name="marked", user=MARKUP.replace(" ", "/"), status=500)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, ui=True) as cluster:
        marked(cluster)
        yield cluster


@pytest.fixture(scope="module")
def context(cluster: Cluster, browser: Any) -> Iterator[Any]:
    """A browser that is logged in."""
    context = browser.new_context()
    context.set_default_timeout(60_000)
    context.new_page().goto(cluster.page.link())
    yield context
    context.close()


@pytest.mark.parametrize("view", VIEWS)
def test_markup_is_shown_as_text(cluster: Cluster, context: Any, view: str) -> None:
    page, errors = context.new_page(), list[str]()
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{cluster.page.link().partition('/ui/')[0]}/ui/#{view}")
    page.locator("#view > *").first.wait_for()
    page.wait_for_timeout(1500)  # causes and histories are loaded one after the other
    assert page.evaluate("window.ran") is None
    assert page.locator("img").count() == 0
    assert page.locator("body script").count() == 0
    assert errors == []
    page.close()


@pytest.mark.parametrize("ref", OBJECTS)
def test_markup_is_legible(cluster: Cluster, context: Any, ref: str) -> None:
    page = context.new_page()
    page.goto(f"{cluster.page.link().partition('/ui/')[0]}/ui/#view=objects&panel=object&object={ref}&tab=yaml")
    page.get_by_text("<img src=x onerror=window.ran=1>").first.wait_for()
    if ref.startswith("configmaps"):
        page.get_by_text("__proto__").first.wait_for()
    page.close()


ATTACK: Final = """async (target) => {
  const path = `${target}/api/v1/namespaces/default/configmaps`;
  const body = JSON.stringify({ metadata: { name: "forged" } });
  const soon = (work) => Promise.race([work, new Promise((resolve) => setTimeout(() => resolve("nothing"), 3000))]);
  const read = async (url) => (await fetch(url, { credentials: "include" })).text();
  const opened = (socket) => new Promise((resolve) => {
    socket.onopen = () => resolve("opened");
    socket.onmessage = () => resolve("a message");
    socket.onerror = () => resolve("nothing");
  });
  const element = (name, properties) => new Promise((resolve) => {
    const made = Object.assign(document.createElement(name), properties);
    made.onload = () => resolve("loaded");
    made.onerror = () => resolve("nothing");
    document.body.append(made);
  });
  const form = (type, value) => {
    const made = Object.assign(document.createElement("form"), { method: "POST", action: path, enctype: type, target: "sink" });
    document.body.append(Object.assign(document.createElement("iframe"), { name: "sink" }), made);
    made.append(Object.assign(document.createElement("input"), { name: value, value: "" }));
    made.submit();
    return "nothing";
  };
  const attempts = {
    read: () => read(path), token: () => read(`${target}/ui/session`), records: () => read(`${target}/fakeapiserver/timeline`),
    write: () => fetch(path, { method: "POST", mode: "no-cors", credentials: "include", body }).then(() => "nothing"),
    lever: () => fetch(`${target}/fakeapiserver/forks`, { method: "POST", mode: "no-cors", credentials: "include" }).then(() => "nothing"),
    form: () => form("text/plain", body), socket: () => opened(new WebSocket(`${path.replace("http", "ws")}?watch=true`)),
    events: () => opened(new EventSource(`${target}/fakeapiserver/timeline?follow=true`, { withCredentials: true })),
    script: () => element("script", { src: `${target}/ui/session` }), module: () => import(`${target}/ui/main.js`).then(() => "loaded"),
  };
  const found = {};
  for (const [name, attempt] of Object.entries(attempts)) {
    found[name] = await soon(Promise.resolve().then(attempt).catch(() => "nothing"));
  }
  return found;
}"""


class _Blank(BaseHTTPRequestHandler):
    """A page without a policy of its own."""

    def do_GET(self) -> None:
        body = b"<!doctype html><title>elsewhere</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[int]:
    """The port of a server of other pages."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Blank)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_another_origin_reads_and_writes_nothing(
    cluster: Cluster, context: Any, elsewhere: int, host: str
) -> None:
    """127.0.0.1 is the same site as the page, whose cookies the browser sends along; localhost is another one."""
    target = cluster.page.link().partition("/ui/")[0]
    page = context.new_page()
    page.goto(f"http://{host}:{elsewhere}/")
    found = page.evaluate(ATTACK, target)
    page.wait_for_timeout(500)  # the form is still on its way
    assert {*found.values()} == {"nothing"}, found
    assert "forged" not in [one["metadata"]["name"] for one in cluster.list("configmaps", namespace="default")]
    assert NamedClient(cluster, "setup").send("GET", "/fakeapiserver/forks") == []
    page.close()


def test_the_page_is_not_shown_in_a_frame(cluster: Cluster, context: Any, elsewhere: int) -> None:
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{elsewhere}/")
    target = cluster.page.link().partition("/ui/")[0]
    page.evaluate(
        "(src) => { document.body.append(Object.assign(document.createElement('iframe'), { src })); }", f"{target}/ui/"
    )
    page.wait_for_timeout(1000)
    assert [frame.url for frame in page.frames[1:]] != [f"{target}/ui/"]
    page.close()


def test_a_name_that_leads_to_this_machine_is_no_way_in(cluster: Cluster, browser: Any) -> None:
    """The browser resolves a foreign name to loopback, as after DNS rebinding."""
    link = cluster.page.link().replace("127.0.0.1", "rebound.example.com")
    rule = "--host-resolver-rules=MAP rebound.example.com 127.0.0.1"
    context = browser.browser_type.launch(
        executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu", rule]
    )
    page = context.new_page()
    response = page.goto(link)
    assert response.status == 403
    assert "the host of the address isn't this server's" in page.content()
    context.close()
