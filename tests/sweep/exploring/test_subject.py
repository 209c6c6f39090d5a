"""The beginning of a scenario is applied, and waited for; other specs may not get what is waited for."""

from typing import Any

from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.sweep.exploring import subject
from fakeapiserver.sweep.scenario import Scenario, Step, applying

SITE: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "shop"}}


def wait(title: str) -> Step:
    def never(_cluster: Cluster) -> None:
        raise TimeoutError(title)

    return Step(title, never)


def test_waits_belong_to_the_beginning() -> None:
    steps = [applying([SITE], "default"), wait("wait sites/shop"), wait("delete sites/shop"), wait("wait pods/a")]
    beginning = subject.beginning_of(Scenario(steps))
    assert beginning.steps == steps[:2]


def test_another_spec_is_waited_for_in_vain() -> None:
    scenario = Scenario([applying([SITE], "default"), wait("wait sites/shop")])
    applied, waiting = subject.with_manifest(scenario, SITE, {**SITE, "spec": {"size": 2}}).steps
    assert applied.applied == [{**SITE, "spec": {"size": 2}}]
    assert waiting.title == "wait sites/shop"
    with Cluster() as cluster:
        waiting.run(cluster)
