"""The order of nodes that is kept for pods of a kind names the same node as a look at all nodes."""

from random import Random
from typing import Any, Final

import pytest

from fakeapiserver.nodes.scheduler.filters import cycle_of, refusal
from fakeapiserver.nodes.scheduler.node_info import PodInfo, Snapshot
from fakeapiserver.nodes.scheduler.ranking import Rankings
from fakeapiserver.nodes.scheduler.scores import best

Object = dict[str, Any]
_TAINT: Final = {"key": "gpu", "value": "1", "effect": "NoSchedule"}
_SPECS: Final[tuple[Object, ...]] = (
    {},
    {"nodeSelector": {"zone": "a"}},
    {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "PreferNoSchedule"}]},
)


def node(random: Random, number: int) -> Object:
    taints = random.choice(
        [[], [], [_TAINT], [{**_TAINT, "effect": "PreferNoSchedule"}] if random.random() < 0.2 else []]
    )
    spec = {"taints": taints, "unschedulable": random.random() < 0.1}
    allocatable = {"cpu": random.choice(["1", "2"]), "memory": "2Gi", "pods": random.choice(["3", "110"])}
    metadata = {"name": f"node-{number}", "labels": {"zone": random.choice("ab")}}
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable}}


def pod(random: Random, number: int) -> Object:
    requests = random.choice([{}, {"cpu": "100m"}, {"cpu": "300m", "memory": "128Mi"}])
    ports = [{"hostPort": 80}] if random.random() < 0.1 else []
    container = {"name": "c", "resources": {"requests": requests}, "ports": ports}
    spec = {**random.choice(_SPECS), "containers": [container]}
    return {"metadata": {"namespace": "default", "name": f"pod-{number}"}, "spec": spec}


@pytest.mark.parametrize("seed", range(20))
def test_the_best_node_is_that_of_a_look_at_all(seed: int) -> None:
    random, snapshot = Random(seed), Snapshot()
    rankings, found = Rankings(snapshot), 0
    for number in range(300):
        match random.randrange(8):
            case 0 | 1:
                snapshot.set_node(node(random, random.randrange(12)))
            case 2:
                snapshot.remove_node(f"node-{random.randrange(12)}")
            case 3:
                snapshot.remove_pod(f"default/pod-{random.randrange(number + 1)}")
            case _:
                info = PodInfo(pod(random, number))
                cycle = cycle_of(info, snapshot)
                fitting = [each for each in snapshot.nodes.values() if refusal(cycle, each) is None]
                expected = best(info, fitting, snapshot) if fitting else None
                ranked = rankings.best(cycle)
                assert ranked is None or ranked is expected
                found += ranked is not None
                if expected is not None:
                    snapshot.place(info, expected.name)
    assert found > 20


@pytest.mark.parametrize(
    "spec",
    [
        {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"volumes": [{"name": "disk", "gcePersistentDisk": {"pdName": "disk"}}]},
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
        {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}
                    ]
                }
            }
        },
    ],
    ids=["spread", "disk", "claim", "preference"],
)
def test_a_pod_that_depends_on_more_than_each_node_has_no_order(spec: Object) -> None:
    snapshot = Snapshot()
    snapshot.set_node(node(Random(1), 1))
    plain: Object = {"metadata": {"namespace": "default", "name": "web"}, "spec": {"containers": [{"name": "c"}]}}
    rankings = Rankings(snapshot)
    assert rankings.best(cycle_of(PodInfo(plain), snapshot)) is snapshot.nodes["node-1"]
    plain["spec"] |= spec
    assert rankings.best(cycle_of(PodInfo(plain), snapshot)) is None


def test_pods_that_are_promised_a_node_prevent_an_order() -> None:
    snapshot = Snapshot()
    snapshot.set_node(node(Random(1), 1))
    info = PodInfo({"metadata": {"namespace": "default", "name": "web"}, "spec": {"containers": [{"name": "c"}]}})
    rankings = Rankings(snapshot)
    snapshot.nominate(PodInfo({**info.pod, "metadata": {"namespace": "default", "name": "first"}}), "node-1")
    assert rankings.best(cycle_of(info, snapshot)) is None
