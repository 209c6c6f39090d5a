import kr8s
import pytest
from kr8s.objects import Deployment

from fakeapiserver import Cluster

WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        },
    },
}


@pytest.mark.fake_cluster(nodes=2)
def test_pods_move_away_from_a_lost_node(fake_cluster: Cluster) -> None:
    api = kr8s.api(kubeconfig=fake_cluster.kubeconfig)
    web = Deployment(WEB, api=api)
    web.create()
    web.wait("condition=Available", timeout=60)
    fake_cluster.clock.stop()

    fake_cluster.nodes.stop("node-1")
    fake_cluster.clock.advance("10m")  # 40 s until the node counts as lost, and five minutes that pods wait for it

    running = [pod for pod in api.get("pods", label_selector="app=web") if "deletionTimestamp" not in pod.metadata]
    assert [(pod.status.phase, pod.spec.nodeName) for pod in running] == [("Running", "node-2")] * 3
