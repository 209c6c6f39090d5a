"""Workloads that are scaled by what they use. A turn is 15 seconds."""

from typing import Any, Final

import pytest

from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.component_helpers.objects import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, PODS
from fakeapiserver.controllers.horizontal_pod_autoscaler import replica_calculator as calculator
from fakeapiserver.controllers.horizontal_pod_autoscaler.replica_calculator import (
    CalculationError,
    Delays,
    PodMetric,
    Tolerances,
)
from fakeapiserver.controllers.horizontal_pod_autoscaler.scaling import (
    DOWN_STABILIZED,
    READY,
    UP_STABILIZED,
    History,
    Limits,
    normalize,
    normalize_with_behavior,
)
from fakeapiserver.server.metrics_apis.values import Values
from tests.controllers.harness import Harness, Object, run
from tests.controllers.workloads import make_ready, selecting, template

CONTROLLER: Final = "horizontal-pod-autoscaler-controller"
TURN: Final = 15.1
NOW: Final = 1_000_000.0
TENTH: Final = Tolerances(0.1, 0.1)
DELAYS: Final = Delays(cpu_initialization_period=300, initial_readiness_delay=30)
TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU: Final = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


# ----------------------------------------------------------------------- how many a metric asks for


def pod(name: str, started: float = 600, ready: str = "True", since: float = 600, phase: str = "Running") -> Object:
    """Started so many seconds ago, (not) ready since so many; it asks for a tenth of a CPU."""
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": rfc3339(NOW - since)}
    requests = {"cpu": "100m", "memory": "100Mi"}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
        "status": {"phase": phase, "startTime": rfc3339(NOW - started), "conditions": [condition]},
    }


def pods(count: int) -> list[Object]:
    return [pod(f"p{number}") for number in range(count)]


def using(*values: int) -> dict[str, PodMetric]:
    """Returns metrics of p0, p1 ..., measured now, over the last 15 seconds."""
    return {f"p{number}": PodMetric(value, NOW, 15.0) for number, value in enumerate(values)}


@pytest.mark.parametrize(
    ("found", "metrics", "replicas", "utilization"),
    [
        pytest.param(pods(2), using(50, 50), 2, 50, id="as it should be"),
        pytest.param(pods(2), using(54, 55), 2, 54, id="a tenth too much is nothing"),
        pytest.param(pods(2), using(90, 90), 4, 90, id="too much"),
        pytest.param(pods(4), using(20, 20, 20, 20), 2, 20, id="too little"),
        pytest.param(pods(3), using(90, 90), 4, 90, id="on the way up who isn't measured does nothing"),
        pytest.param(pods(3), using(70, 70), 3, 70, id="and may turn the way round, which is no way at all"),
        pytest.param(pods(3), using(10, 10), 3, 10, id="on the way down it does all that it asked for"),
        pytest.param([*pods(2), pod("p2", phase="Pending")], using(90, 90), 4, 90, id="one that waits does nothing"),
        pytest.param([*pods(2), pod("p2", phase="Failed")], using(90, 90, 90), 4, 90, id="one that failed isn't there"),
        pytest.param(
            [*pods(2), pod("p2", 100, "False")], using(50, 50, 900), 3, 50, id="one that starts isn't measured"
        ),
        pytest.param(
            [*pods(2), pod("p2", 100, since=10)], using(50, 50, 900), 3, 50, id="nor is it before a whole window"
        ),
        pytest.param([*pods(2), pod("p2", 100, since=20)], using(50, 50, 200), 6, 100, id="but after it"),
        pytest.param(
            [*pods(2), pod("p2", 600, "False", 590)], using(50, 50, 900), 3, 50, id="one that never was ready"
        ),
        pytest.param([*pods(2), pod("p2", 600, "False", 500)], using(50, 50, 200), 6, 100, id="one that was, once"),
    ],
)
def test_utilization(found: list[Object], metrics: dict[str, PodMetric], replicas: int, utilization: int) -> None:
    got = calculator.resource_replicas(
        metrics, found, len(found), 50, "cpu", "", calculator.CalculationRules(TENTH, DELAYS, NOW)
    )
    assert (got.replicas, got.utilization) == (replicas, utilization)


@pytest.mark.parametrize(
    ("found", "metrics", "container", "why"),
    [
        ([], using(1), "", "no pods returned by selector while calculating replica count"),
        (pods(1), {}, "", "did not receive metrics for targeted pods (pods might be unready)"),
        (
            [pod("p0", phase="Pending")],
            using(1),
            "",
            "did not receive metrics for targeted pods (pods might be unready)",
        ),
        (pods(1), using(1), "other", "container other not found in Pod p0"),
        (
            [{**pod("p0"), "spec": {"containers": [{"name": "c"}]}}],
            using(1),
            "",
            "missing request for cpu in container c of Pod p0",
        ),
        (
            [{**pod("p0"), "spec": {"containers": [{"name": "c"}], "resources": {"requests": {"memory": "1Gi"}}}}],
            using(1),
            "",
            "missing pod-level request for cpu in Pod p0",
        ),
    ],
)
def test_what_cannot_be_calculated(
    found: list[Object], metrics: dict[str, PodMetric], container: str, why: str
) -> None:
    with pytest.raises(CalculationError) as error:
        calculator.resource_replicas(
            metrics, found, 1, 50, "cpu", container, calculator.CalculationRules(TENTH, DELAYS, NOW)
        )
    assert str(error.value) == why


@pytest.mark.parametrize(
    ("current", "metrics", "replicas", "average"),
    [
        (2, using(1000, 1000), 2, 1000),
        (2, using(3000, 3000), 6, 3000),
        (4, using(500, 500, 500, 500), 2, 500),
        (3, using(100, 100), 2, 100),
        (3, using(1600, 1600), 3, 1600),
    ],
)
def test_average_values(current: int, metrics: dict[str, PodMetric], replicas: int, average: int) -> None:
    got = calculator.plain_replicas(
        metrics, pods(current), current, 1000, "", calculator.CalculationRules(TENTH, DELAYS, NOW)
    )
    assert got == (replicas, average)


@pytest.mark.parametrize(
    ("usage", "target", "current", "replicas", "shown"),
    [
        (30_000, 10_000, 3, 3, 10_000),
        (35_000, 10_000, 3, 4, 11_667),
        (5_000, 10_000, 3, 1, 1_667),
        (0, 10_000, 3, 0, 0),
        (30_000, 10_000, 0, 3, -(2**63)),
        (2**63 - 1, 1, 1, 2**31 - 1, 2**63 - 1),
    ],
)
def test_external_values_for_each_pod(usage: int, target: int, current: int, replicas: int, shown: int) -> None:
    """Without pods there is no average: Go's floating-point numbers make the least there is of it."""
    assert calculator.external_per_pod_replicas(usage, target, current, TENTH) == (replicas, shown)


# ------------------------------------------------------------------------- how many there may be now


def rules(window: int | None = 0, select: str = "Max", **policies: tuple[int, int]) -> Object:
    """policies: Pods=(value, period)."""
    found = [{"type": name, "value": value, "periodSeconds": period} for name, (value, period) in policies.items()]
    rest = {} if window is None else {"stabilizationWindowSeconds": window}
    return {
        "selectPolicy": select,
        "policies": found or [{"type": "Percent", "value": 100, "periodSeconds": 15}],
        **rest,
    }


@pytest.mark.parametrize(
    ("current", "desired", "replicas", "why"),
    [
        (3, 3, 3, "DesiredWithinRange"),
        (1, 9, 4, "ScaleUpLimit"),
        (3, 9, 6, "ScaleUpLimit"),
        (6, 20, 10, "TooManyReplicas"),
        (3, 1, 2, "TooFewReplicas"),
    ],
)
def test_limits(current: int, desired: int, replicas: int, why: str) -> None:
    got = normalize(History(), current, desired, Limits(2, 10, 300, NOW))
    assert (got.replicas, got.limited, got.why.reason) == (replicas, replicas != desired, why)


def test_a_high_recommendation_holds_for_a_while() -> None:
    history = History()
    assert normalize(history, 5, 5, Limits(1, 10, 300, NOW)).able == READY
    assert normalize(history, 5, 2, Limits(1, 10, 300, NOW + 299))[:2] == (5, DOWN_STABILIZED)
    assert normalize(history, 5, 2, Limits(1, 10, 300, NOW + 301))[:2] == (2, READY)


@pytest.mark.parametrize(
    ("current", "desired", "up", "down", "replicas", "why"),
    [
        (4, 9, rules(Pods=(2, 60)), rules(), 6, "ScaleUpLimit"),
        (4, 9, rules(Pods=(2, 60), Percent=(100, 60)), rules(), 8, "ScaleUpLimit"),
        (4, 9, rules(select="Min", Pods=(2, 60), Percent=(100, 60)), rules(), 6, "ScaleUpLimit"),
        (4, 9, rules(select="Disabled"), rules(), 4, "ScaleUpLimit"),
        (1, 9, rules(Percent=(10, 60)), rules(), 2, "ScaleUpLimit"),
        (6, 99, rules(), rules(), 10, "TooManyReplicas"),
        (8, 1, rules(), rules(Pods=(2, 60)), 6, "ScaleDownLimit"),
        (8, 1, rules(), rules(Percent=(30, 60)), 5, "ScaleDownLimit"),
        (8, 1, rules(), rules(select="Min", Pods=(5, 60), Percent=(30, 60)), 5, "ScaleDownLimit"),
        (8, 1, rules(), rules(select="Disabled"), 8, "ScaleDownLimit"),
        (8, 1, rules(), rules(), 2, "TooFewReplicas"),
        (4, 4, rules(), rules(), 4, "DesiredWithinRange"),
    ],
)
def test_policies(current: int, desired: int, up: Object, down: Object, replicas: int, why: str) -> None:
    behavior = {"scaleUp": up, "scaleDown": down}
    got = normalize_with_behavior(History(), behavior, current, desired, Limits(2, 10, 300, NOW))
    assert (got.replicas, got.limited, got.why.reason) == (replicas, replicas != desired, why)


def test_a_policy_counts_what_came_in_its_period() -> None:
    behavior, history = {"scaleUp": rules(Pods=(2, 60)), "scaleDown": rules()}, History()
    history.scaled(behavior, 4, 6, NOW)
    assert normalize_with_behavior(history, behavior, 6, 9, Limits(1, 10, 300, NOW + 59)).replicas == 6
    assert normalize_with_behavior(history, behavior, 6, 9, Limits(1, 10, 300, NOW + 61)).replicas == 8


def test_windows_of_both_directions() -> None:
    """Up it goes to the lowest of late, down to the highest."""
    behavior, history = {"scaleUp": rules(60), "scaleDown": rules(None)}, History()
    history.begin(4, NOW)
    assert normalize_with_behavior(history, behavior, 4, 8, Limits(1, 10, 300, NOW + 30))[:2] == (4, UP_STABILIZED)
    assert normalize_with_behavior(history, behavior, 4, 6, Limits(1, 10, 300, NOW + 80))[:2] == (6, READY)
    assert normalize_with_behavior(history, behavior, 6, 2, Limits(1, 10, 300, NOW + 100))[:2] == (6, DOWN_STABILIZED)


# ------------------------------------------------------------------------------------ the controller


def autoscaler(*metrics: Object, **spec: Any) -> Object:
    found = {"maxReplicas": 10, "scaleTargetRef": TARGET, "metrics": [*metrics] or [CPU], **spec}
    return {"metadata": {"name": "web"}, "spec": found}


def external(value: str = "10") -> Object:
    target = {"type": "AverageValue", "averageValue": value}
    return {"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}


async def deploy(cluster: Harness, replicas: int) -> Values:
    """Pods that have been ready for ten minutes, and what is measured of them."""
    await cluster.api.metrics_apis.serve(["*"])
    requests = {"requests": {"cpu": "100m"}}
    own = template()
    own["spec"]["containers"][0]["resources"] = requests
    spec = {"replicas": replicas, "selector": selecting(), "template": own}
    await cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    await start(cluster)
    await cluster.advance(600)
    return cluster.api.metrics_apis.values


async def start(cluster: Harness) -> None:
    """All pods run."""
    await make_ready(cluster)
    for name in await cluster.names(PODS):
        await cluster.patch_status(PODS, name, {"startTime": rfc3339(cluster.clock.now())})


async def look(cluster: Harness) -> tuple[int, Object, dict[str, tuple[str, str]]]:
    """A turn later: (replicas of the target, status, conditions)."""
    await cluster.advance(TURN)
    return await see(cluster)


async def see(cluster: Harness) -> tuple[int, Object, dict[str, tuple[str, str]]]:
    """(replicas of the target, status, conditions)."""
    status = (await cluster.get(HORIZONTAL_POD_AUTOSCALERS, "web"))["status"]
    conditions = {found["type"]: (found["status"], found["reason"]) for found in status.get("conditions") or ()}
    return (await cluster.get(DEPLOYMENTS, "web"))["spec"]["replicas"], status, conditions


WORKLOADS: Final = (CONTROLLER, "deployment-controller", "replicaset-controller")


def test_a_deployment_grows_with_its_load_and_shrinks_five_minutes_later() -> None:
    async def scenario(cluster: Harness) -> None:
        values = await deploy(cluster, 2)
        values.set_pod(selector="app=web", usage={"cpu": "90m"})
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler())
        replicas, status, conditions = await see(cluster)
        assert replicas == 4
        assert status["currentMetrics"] == [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "current": {"averageUtilization": 90, "averageValue": "90m"}},
            }
        ]
        assert (status["currentReplicas"], status["desiredReplicas"], status["observedGeneration"]) == (2, 4, 1)
        assert conditions == {
            "ScaledToZero": ("False", "NotScaledToZero"),
            "AbleToScale": ("True", "SucceededRescale"),
            "ScalingActive": ("True", "ValidMetricFound"),
            "ScalingLimited": ("False", "DesiredWithinRange"),
        }
        reason = "cpu resource utilization (percentage of request) above target"
        assert ("SuccessfulRescale", f"New size: 4; reason: {reason}") in await cluster.events()
        await start(cluster)
        values.set_pod(selector="app=web", usage={"cpu": "5m"})
        await cluster.advance(600)
        replicas, _, conditions = await look(cluster)
        assert replicas == 1
        assert ("SuccessfulRescale", "New size: 1; reason: All metrics below target") in await cluster.events()

    run(scenario, *WORKLOADS)


def test_before_1_37_a_new_autoscaler_waits_for_its_turn() -> None:
    async def scenario(cluster: Harness) -> None:
        values = await deploy(cluster, 2)
        values.set_pod(selector="app=web", usage={"cpu": "90m"})
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler())
        assert (await see(cluster))[::2] == (2, {})
        replicas, status, conditions = await look(cluster)
        assert (replicas, "observedGeneration" in status, "ScaledToZero" in conditions) == (4, False, False)

    run(scenario, *WORKLOADS, version="1.36")


def test_a_changed_autoscaler_has_its_turn_at_once() -> None:
    async def scenario(cluster: Harness) -> None:
        values = await deploy(cluster, 2)
        values.set_pod(selector="app=web", usage={"cpu": "50m"})
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler())
        assert (await see(cluster))[0] == 2
        await cluster.of(HORIZONTAL_POD_AUTOSCALERS).patch("web", {"spec": {"minReplicas": 3}})
        await cluster.settle()
        assert (await see(cluster))[0] == 3

    run(scenario, *WORKLOADS)


def test_without_load_a_target_may_lose_its_last_pod_and_gets_it_back() -> None:
    async def scenario(cluster: Harness) -> None:
        values = await deploy(cluster, 1)
        values.set_external("queue", 0)
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(external(), minReplicas=0))
        await cluster.advance(330)
        replicas, _, conditions = await see(cluster)
        assert (replicas, conditions["ScaledToZero"]) == (0, ("True", "ScaledToZero"))
        values.set_external("queue", 30)
        replicas, _, conditions = await look(cluster)
        assert (replicas, conditions["ScaledToZero"]) == (3, ("False", "NotScaledToZero"))
        # a target that its owner scales to zero stays there
        await cluster.of(DEPLOYMENTS).patch("web", {"spec": {"replicas": 0}})
        replicas, _, conditions = await look(cluster)
        assert (replicas, conditions["ScalingActive"]) == (0, ("False", "ScalingDisabled"))

    run(scenario, *WORKLOADS)


def test_it_waits_before_it_shrinks() -> None:
    async def scenario(cluster: Harness) -> None:
        values = await deploy(cluster, 4)
        values.set_pod(selector="app=web", usage={"cpu": "10m"})
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler())
        replicas, _, conditions = await look(cluster)
        assert (replicas, conditions["AbleToScale"]) == (4, ("True", "ScaleDownStabilized"))
        await cluster.advance(330)
        assert (await look(cluster))[0] == 1

    run(scenario, *WORKLOADS)


@pytest.mark.parametrize(
    ("replicas", "spec", "expected", "event"),
    [
        (5, {"maxReplicas": 3}, 3, "New size: 3; reason: Current number of replicas above Spec.MaxReplicas"),
        (1, {"minReplicas": 2}, 2, "New size: 2; reason: Current number of replicas below Spec.MinReplicas"),
        (0, {}, 0, ""),
        (1, {}, 3, "New size: 3; reason: external metric queue(nil) above target"),
    ],
)
def test_sizes(replicas: int, spec: Object, expected: int, event: str) -> None:
    async def scenario(cluster: Harness) -> None:
        values = await deploy(cluster, replicas)
        values.set_external("queue", 30)
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(external(), **spec))
        found, _, conditions = await see(cluster)
        assert found == expected
        told = [message for reason, message in await cluster.events() if reason == "SuccessfulRescale"]
        assert told == ([event] if event else [])
        if not replicas:
            assert conditions["ScalingActive"] == ("False", "ScalingDisabled")

    run(scenario, *WORKLOADS)


@pytest.mark.parametrize(
    ("metric", "reason", "message"),
    [
        (
            CPU,
            "FailedGetResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics "
            "API: the server could not find the requested resource (get pods.metrics.k8s.io)",
        ),
        (
            external(),
            "FailedGetExternalMetric",
            "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: the server could "
            "not find the requested resource (get queue.external.metrics.k8s.io)",
        ),
    ],
)
def test_without_metrics_it_stays_and_says_why(metric: Object, reason: str, message: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await deploy(cluster, 2)
        await cluster.api.metrics_apis.serve([])
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(metric))
        replicas, status, conditions = await look(cluster)
        assert (replicas, conditions["ScalingActive"]) == (2, ("False", reason))
        assert status["currentMetrics"] == [{"type": ""}]
        events = await cluster.events()
        assert (reason, message) in events
        assert "FailedComputeMetricsReplicas" in [found for found, _ in events]

    run(scenario, *WORKLOADS)


def test_with_one_metric_missing_it_grows_but_does_not_shrink() -> None:
    async def scenario(cluster: Harness) -> None:
        values = await deploy(cluster, 2)
        spec = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(CPU, external(), **spec))
        values.set_pod(selector="app=web", usage={"cpu": "10m"})
        replicas, _, conditions = await look(cluster)
        assert (replicas, conditions["ScalingActive"]) == (2, ("False", "FailedGetExternalMetric"))
        values.set_pod(selector="app=web", usage={"cpu": "90m"})
        replicas, status, conditions = await look(cluster)
        assert (replicas, conditions["ScalingActive"]) == (4, ("True", "ValidMetricFound"))
        assert [found["type"] for found in status["currentMetrics"]] == ["Resource", ""]

    run(scenario, *WORKLOADS)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({**TARGET, "name": "gone"}, 'deployments.apps "gone" not found'),
        ({**TARGET, "kind": "Widget"}, 'no matches for kind "Widget" in group "apps"'),
    ],
)
def test_a_target_that_is_not_there(target: Object, message: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await deploy(cluster, 1)
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(scaleTargetRef=target))
        _, _, conditions = await look(cluster)
        assert conditions == {"AbleToScale": ("False", "FailedGetScale")}
        assert ("FailedGetScale", message) in await cluster.events()

    run(scenario, *WORKLOADS)


def test_two_autoscalers_of_the_same_pods_do_nothing() -> None:
    async def scenario(cluster: Harness) -> None:
        values = await deploy(cluster, 1)
        values.set_external("queue", 50)
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(external()))
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, {**autoscaler(external()), "metadata": {"name": "other"}})
        # The first to look doesn't know of the other's pods yet.
        await look(cluster)
        _, _, conditions = await look(cluster)
        assert conditions["ScalingActive"] == ("False", "AmbiguousSelector")
        await cluster.of(HORIZONTAL_POD_AUTOSCALERS).delete("other")
        _, _, conditions = await look(cluster)
        assert conditions["ScalingActive"] == ("True", "ValidMetricFound")

    run(scenario, *WORKLOADS)


def test_its_own_tolerance() -> None:
    async def scenario(cluster: Harness) -> None:
        values = await deploy(cluster, 2)
        values.set_pod(selector="app=web", usage={"cpu": "54m"})
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(behavior={"scaleUp": {"tolerance": "0.05"}}))
        assert (await look(cluster))[0] == 3

    run(scenario, *WORKLOADS)


def test_nothing_changes_nothing_is_written() -> None:
    async def scenario(cluster: Harness) -> None:
        values = await deploy(cluster, 2)
        values.set_pod(selector="app=web", usage={"cpu": "50m"})
        await cluster.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler())
        await cluster.advance(60)
        before = cluster.api.storage.revision
        await cluster.advance(60)
        assert cluster.api.storage.revision == before

    run(scenario, *WORKLOADS)
