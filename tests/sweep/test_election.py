"""Leader election by an annotation is no part of a plan or a comparison."""

from fakeapiserver import Cluster
from fakeapiserver.evidence import election
from fakeapiserver.sweep import states
from fakeapiserver.sweep.case import Run
from fakeapiserver.sweep.planning.plan import points_of
from tests.plain_client import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
RECORD = {"control-plane.alpha.kubernetes.io/leader": '{"holderIdentity": "a"}'}


def test_records_are_neither_points_nor_states() -> None:
    with Cluster(kept_requests=100) as cluster:
        client = Client(cluster)
        client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "lock", "annotations": RECORD}})
        client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "db"}, "data": {"size": "1"}})
        writes = [entry for entry in cluster.requests.all().writes if entry.resource == "configmaps"]
        assert {entry.name: election.concerns(entry) for entry in writes} == {"lock": True, "db": False}
        assert [str(point) for point, _ in points_of(Run(writes=writes))] == ["create configmaps default/db"]
        state = states.state_of(cluster.snapshot())
        assert [title for title in state if title.startswith("configmaps ")] == ["configmaps default/db"]
