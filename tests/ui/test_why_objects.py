"""The rules of "why" for deletions that don't end, custom resources, and clients that write too often."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from fakeapiserver import Cluster
from tests.ui.causes import causes, problems, shown
from tests.ui.clients import NamedClient

CORE: Final = "/api/v1/namespaces/default"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS: Final = "/apis/example.com/v1/namespaces/default/widgets"
OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(plural: str, kind: str) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}},
        "subresources": {"status": {}},
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def config_map(name: str, finalizer: str = "", owner: Mapping[str, Any] | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if finalizer:
        metadata["finalizers"] = [finalizer]
    if owner is not None:
        owned_by = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"]}
        metadata["ownerReferences"] = [{**owned_by, "uid": owner["metadata"]["uid"], "blockOwnerDeletion": True}]
    return {"metadata": metadata}


class Client(NamedClient):
    """Fails if a request is refused."""

    def send(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Any:
        answer = super().send(method, path, body, content_type)
        assert answer.get("status") != "Failure", answer
        return answer


def deletions(cluster: Cluster) -> None:
    """Objects that are being deleted and stay."""
    client = Client(cluster, "setup")
    parent = client.send("POST", f"{CORE}/configmaps", config_map("parent"))
    client.send("POST", f"{CORE}/configmaps", config_map("child", "example.com/keep", parent))
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "full"}})
    client.send("POST", "/api/v1/namespaces/full/configmaps", config_map("last", "example.com/slow"))
    finalizers = {"finalizers": ["kubernetes", "example.com/tenant"]}
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "rented"}, "spec": finalizers})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    client.send("POST", f"{CORE}/persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": claim})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    container = {"name": "main", "image": "nginx"}
    client.send(
        "POST",
        f"{CORE}/pods",
        {"metadata": {"name": "user"}, "spec": {"nodeName": "node-1", "containers": [container], "volumes": [volume]}},
    )
    client.send("POST", DEFINITIONS, definition("gadgets", "Gadget"))
    cluster.settle()
    gadget = {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "g", "finalizers": ["example.com/unplug"]},
    }
    client.send("POST", "/apis/example.com/v1/namespaces/default/gadgets", gadget)
    client.send("DELETE", f"{CORE}/configmaps/parent?propagationPolicy=Foreground")
    for path in (
        "/api/v1/namespaces/full",
        "/api/v1/namespaces/rented",
        f"{CORE}/persistentvolumeclaims/data",
        f"{DEFINITIONS}/gadgets.example.com",
    ):
        client.send("DELETE", path)
    cluster.settle()
    NamedClient(cluster, "newcomer").send("POST", "/api/v1/namespaces/full/configmaps", config_map("late"))


def widgets(cluster: Cluster) -> None:
    """Custom resources, of which something is wrong with all but `fine`."""
    client, operator = Client(cluster, "setup"), Client(cluster, "widget-operator")
    client.send("POST", DEFINITIONS, definition("widgets", "Widget"))
    cluster.settle()
    for name in ("fine", "failed", "behind", "ignored"):
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}}
        client.send("POST", WIDGETS, widget)
    ready = {"type": "Ready", "status": "True", "reason": "Done", "message": ""}
    failed = {"type": "Ready", "status": "False", "reason": "NoDisk", "message": "no disk is free"}
    for name, condition in (("fine", ready), ("failed", failed), ("behind", ready)):
        status = {"observedGeneration": 1, "conditions": [condition]}
        operator.merge(f"{WIDGETS}/{name}/status", {"status": status})
    client.merge(f"{WIDGETS}/behind", {"spec": {"size": 2}})
    NamedClient(cluster, "widget-operator").send(
        "POST", f"{CORE}/pods", {"metadata": {"name": "w"}, "spec": {"containers": []}}
    )


def loops(cluster: Cluster) -> None:
    """`looper` changes an object all the time, `idler` writes one without a change, and `clock` does neither often."""
    for name in ("busy", "quiet", "calm"):
        Client(cluster, "setup").send("POST", f"{CORE}/configmaps", config_map(name))
    looper, idler, calm = (Client(cluster, name) for name in ("looper", "idler", "steady"))
    for number in range(15):
        looper.merge(f"{CORE}/configmaps/busy", {"data": {"time": str(number)}})
    for _ in range(8):
        idler.merge(f"{CORE}/configmaps/quiet", {"data": {"same": "1"}})
    for number in range(4):
        calm.merge(f"{CORE}/configmaps/calm", {"data": {"time": str(number)}})


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    with Cluster(nodes=1, ui=True) as cluster:
        for story in (deletions, widgets, loops):
            story(cluster)
        with shown(browser, cluster) as page:
            yield page


@pytest.mark.parametrize(
    ("ref", "sentences"),
    [
        (
            "configmaps/default/parent",
            [
                "It waits for the finalizer foregroundDeletion.",
                "It is deleted in the foreground, after its dependents: ConfigMap child is left.",
                "ConfigMap child is being deleted, too.",
                "It waits for the finalizer example.com/keep, which no client has removed.",
            ],
        ),
        (
            "namespaces//full",
            [
                "1 object is left in it: ConfigMap last.",
                "ConfigMap last is being deleted, but still there.",
                "It waits for the finalizer example.com/slow, which no client has removed.",
                "setup asked for the deletion",
            ],
        ),
        (
            "namespaces//rented",
            [
                "It is empty, but spec.finalizers still has example.com/tenant.",
                "Another controller than those of the cluster removes it, by an update of /api/v1/namespaces/rented/finalize.",
            ],
        ),
        (
            "persistentvolumeclaims/default/data",
            ["It waits for the finalizer kubernetes.io/pvc-protection.", "Pod user uses the claim."],
        ),
        (
            "customresourcedefinitions.apiextensions.k8s.io//gadgets.example.com",
            [
                "1 object of the kind is left: Gadget g.",
                "Gadget g can't be deleted.",
                "It waits for the finalizer example.com/unplug, which no client has removed.",
            ],
        ),
        (
            "widgets.example.com/default/failed",
            [
                "The condition Ready is False (NoDisk).",
                "widget-operator wrote the status last",
                "widget-operator was refused to create pods w: 422 Invalid",
            ],
        ),
        (
            "widgets.example.com/default/behind",
            [
                "The spec is at generation 2, but status.observedGeneration is 1: its controller has not acted on the last change.",
                "No client watches widgets: the controller of this kind is not running, or watches something else.",
            ],
        ),
        (
            "widgets.example.com/default/ignored",
            ["It has no status: no controller has looked at it yet, or none reports."],
        ),
        ("widgets.example.com/default/fine", []),
        ("configmaps/default/calm", []),
    ],
)
def test_why_an_object_is_as_it_is(page: Any, ref: str, sentences: list[str]) -> None:
    r, namespace, name = ref.split("/")
    found = causes(page, {"r": r, "ns": namespace, "name": name})
    assert bool(found) == bool(sentences), json.dumps(found, indent=1)
    for sentence in sentences:
        assert any(sentence in text for text in found), json.dumps(found, indent=1)


def test_why_nothing_is_created_in_a_namespace(page: Any) -> None:
    found = causes(page, {"refused": "newcomer"})
    assert any("Namespace full is being deleted: nothing new is created in it." in text for text in found), found


@pytest.mark.parametrize(
    ("sentence", "count"),
    [
        pytest.param("looper wrote ConfigMap busy 15 times within", 1, id="a hot loop"),
        pytest.param("idler rewrote ConfigMap quiet 7 times without changing it", 1, id="idle writes"),
        pytest.param("ConfigMap calm", 0, id="ordinary writes"),
        pytest.param("ConfigMap default/parent is being deleted, but still there.", 1, id="a foreground deletion"),
        pytest.param("Namespace full is being deleted, but still there.", 1, id="a namespace that isn't empty"),
        pytest.param("ConfigMap full/last is being deleted, but still there.", 0, id="what the namespace explains"),
        pytest.param("ConfigMap default/child is being deleted", 0, id="what its owner explains"),
        pytest.param("Gadget default/g is being deleted", 0, id="what its definition explains"),
        pytest.param("Widget default/failed is not ready.", 1, id="a custom resource"),
        pytest.param("Widget default/fine", 0, id="a custom resource that is ready"),
    ],
)
def test_what_looks_wrong_without_being_asked(page: Any, sentence: str, count: int) -> None:
    found = problems(page)
    assert sum(sentence in text for text in found) == count, json.dumps(found, indent=1)


def test_what_has_lost_its_owner_without_a_garbage_collector(browser: Any) -> None:
    with Cluster(controllers=("deployment",), ui=True) as cluster:
        client = Client(cluster, "setup")
        parent = client.send("POST", f"{CORE}/configmaps", config_map("parent"))
        client.send("POST", f"{CORE}/configmaps", config_map("child", owner=parent))
        client.send("DELETE", f"{CORE}/configmaps/parent")
        with shown(browser, cluster) as page:
            first, second = causes(page, {"r": "configmaps", "ns": "default", "name": "child"})
    assert first.startswith("Its owner parent is gone since revision")
    assert second == "The garbage-collector-controller, which removes it, is off."
