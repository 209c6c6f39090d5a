"""The status of flow schemas reports whether their priority level exists (the condition is a real cluster's)."""

from typing import Any

from conformance.exchange import Client
from fakeapiserver import Cluster

GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
LEVEL = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
FOUND = 'This FlowSchema references the PriorityLevelConfiguration object named "extra" and it exists'
MISSING = 'This FlowSchema references the PriorityLevelConfiguration object named "extra" but there is no such object'


def test_the_condition_follows_the_priority_level(fake_cluster: Cluster) -> None:
    client = Client(fake_cluster.url, fake_cluster.token)

    def send(method: str, path: str, **more: Any) -> Any:
        return client.send({"method": method, "path": f"{GROUP}/{path}", **more}, [])["body"]

    def settled(reason: str) -> Any:
        for _ in range(1000):
            body = send("GET", "flowschemas/mine")
            if reason in (condition["reason"] for condition in body["status"].get("conditions", ())):
                return body
        raise AssertionError(body)

    def told(body: Any) -> list[tuple[str, str, str, str]]:
        conditions = body["status"]["conditions"]
        assert all(condition["lastTransitionTime"] for condition in conditions)
        return [(c["type"], c["status"], c["reason"], c["message"]) for c in conditions]

    spec = {"priorityLevelConfiguration": {"name": "extra"}, "matchingPrecedence": 9000}
    send("POST", "flowschemas", body={"metadata": {"name": "mine"}, "spec": spec})
    assert told(body := settled("NotFound")) == [("Dangling", "True", "NotFound", MISSING)]
    assert [
        (entry["operation"], entry["subresource"])
        for entry in body["metadata"]["managedFields"]
        if entry["manager"] == "api-priority-and-fairness-config-consumer-v1"
    ] == [("Apply", "status")]
    send("POST", "prioritylevelconfigurations", body={"metadata": {"name": "extra"}, "spec": LEVEL})
    assert told(settled("Found")) == [("Dangling", "False", "Found", FOUND)]
    send("DELETE", "prioritylevelconfigurations/extra")
    assert told(settled("NotFound")) == [("Dangling", "True", "NotFound", MISSING)]
    # A status that another client writes is corrected.
    wrong = {"status": {"conditions": [{"type": "Dangling", "status": "Unknown", "reason": "Guess", "message": ""}]}}
    send("PATCH", "flowschemas/mine/status", type="application/merge-patch+json", body=wrong)
    assert told(settled("NotFound")) == [("Dangling", "True", "NotFound", MISSING)]
