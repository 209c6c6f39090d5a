"""Tests what controllers count, under kube-controller-manager's names."""

from collections.abc import Awaitable, Callable

import pytest

from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.component_helpers.objects import (
    CRON_JOBS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
)
from tests.controllers.harness import Harness, run

CONTAINERS = [{"name": "c", "image": "x"}]
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
JOB_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}


async def finished_job(cluster: Harness) -> None:
    await cluster.create(JOBS, {"metadata": {"name": "once"}, "spec": {"template": JOB_TEMPLATE}})
    await cluster.settle()
    for name in await cluster.names(PODS):
        await cluster.patch_status(PODS, name, {"phase": "Succeeded"})
    await cluster.advance(2)


async def expired_job(cluster: Harness) -> None:
    spec = {"template": JOB_TEMPLATE, "ttlSecondsAfterFinished": 10}
    await cluster.create(JOBS, {"metadata": {"name": "once"}, "spec": spec})
    now = rfc3339(cluster.clock.now())
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("SuccessCriteriaMet", "Complete")
    ]
    await cluster.patch_status(JOBS, "once", {"startTime": now, "completionTime": now, "conditions": conditions})
    await cluster.advance(11)


async def cron_job(cluster: Harness) -> None:
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}}
    await cluster.create(CRON_JOBS, {"metadata": {"name": "often"}, "spec": spec})
    await cluster.advance(61 - cluster.clock.now() % 60)  # one full minute is passed, never two


async def ephemeral_volume(cluster: Harness) -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": claim}}]
    await cluster.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS, "volumes": volumes}})
    await cluster.settle()
    assert await cluster.names(PERSISTENT_VOLUME_CLAIMS) == ["p-v"]


async def tainted_node(cluster: Harness) -> None:
    taints = [{"key": "a", "effect": "NoExecute"}]
    await cluster.create(NODES, {"metadata": {"name": "n"}, "spec": {"taints": taints}}, "")
    await cluster.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS, "nodeName": "n"}})
    await cluster.advance(1)


async def pod_without_node(cluster: Harness) -> None:
    await cluster.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS, "nodeName": "gone"}})
    await cluster.advance(100)


async def node(cluster: Harness) -> None:
    await cluster.create(NODES, {"metadata": {"name": "n"}}, "")
    await cluster.patch_status(NODES, "n", {"conditions": [{"type": "Ready", "status": "True"}]}, "")
    await cluster.advance(6)


async def service(cluster: Harness) -> None:
    await cluster.create(
        SERVICES, {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    )
    await cluster.settle()


async def scaled_down(cluster: Harness) -> None:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    await cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    await cluster.settle()
    now = rfc3339(cluster.clock.now())
    for name in await cluster.names(PODS):
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": now}]
        await cluster.patch_status(PODS, name, {"phase": "Running", "conditions": conditions})
    await cluster.advance(5)
    await cluster.of(DEPLOYMENTS).patch("web", {"spec": {"replicas": 1}})
    await cluster.settle()


async def nothing(cluster: Harness) -> None:
    await cluster.settle()


JOB = "job-controller"
NON_INDEXED = {"completion_mode": "NonIndexed"}
ZONE = {"zone": ""}


@pytest.mark.parametrize(
    ("scenario", "controllers", "name", "labels", "value"),
    [
        (
            finished_job,
            (JOB,),
            "job_controller_jobs_finished_total",
            {**NON_INDEXED, "result": "succeeded", "reason": "CompletionsReached"},
            1,
        ),
        (finished_job, (JOB,), "job_controller_job_pods_finished_total", {**NON_INDEXED, "result": "succeeded"}, 1),
        (finished_job, (JOB,), "job_controller_job_pods_finished_total", {**NON_INDEXED, "result": "failed"}, 0),
        (
            finished_job,
            (JOB,),
            "job_controller_job_syncs_total",
            {**NON_INDEXED, "result": "success", "action": "pods_created"},
            1,
        ),
        (
            finished_job,
            (JOB,),
            "job_controller_job_sync_duration_seconds_count",
            {**NON_INDEXED, "result": "success", "action": "pods_created"},
            1,
        ),
        (finished_job, (JOB,), "job_controller_job_pods_creation_total", {"reason": "new", "status": "succeeded"}, 1),
        (
            expired_job,
            ("ttl-after-finished-controller",),
            "ttl_after_finished_controller_job_deletion_duration_seconds_count",
            {},
            1,
        ),
        (
            cron_job,
            ("cronjob-controller",),
            "cronjob_controller_job_creation_skew_duration_seconds_count",
            {},
            1,
        ),
        (ephemeral_volume, ("ephemeral-volume-controller",), "ephemeral_volume_controller_create_total", {}, 1),
        (
            ephemeral_volume,
            ("ephemeral-volume-controller",),
            "ephemeral_volume_controller_create_failures_total",
            {},
            0,
        ),
        (tainted_node, ("taint-eviction-controller",), "taint_eviction_controller_pod_deletions_total", {}, 1),
        (
            tainted_node,
            ("taint-eviction-controller",),
            "taint_eviction_controller_pod_deletion_duration_seconds_count",
            {},
            1,
        ),
        (
            pod_without_node,
            ("pod-garbage-collector-controller",),
            "pod_gc_collector_force_delete_pods_total",
            {"namespace": "default", "reason": "orphaned"},
            1,
        ),
        (node, ("node-lifecycle-controller",), "node_collector_zone_size", ZONE, 1),
        (node, ("node-lifecycle-controller",), "node_collector_zone_health", ZONE, 100),
        (node, ("node-lifecycle-controller",), "node_collector_unhealthy_nodes_in_zone", ZONE, 0),
        (node, ("node-lifecycle-controller",), "node_collector_evictions_total", ZONE, 0),
        (
            scaled_down,
            ("deployment-controller", "replicaset-controller"),
            "replicaset_controller_sorting_deletion_age_ratio_count",
            {},
            1,
        ),
        (
            nothing,
            ("root-ca-certificate-publisher-controller",),
            "root_ca_cert_publisher_sync_total",
            {"code": "200"},
            4,
        ),
        (
            nothing,
            ("garbage-collector-controller",),
            "garbagecollector_controller_resources_sync_error_total",
            {},
            0,
        ),
    ],
)
def test_what_a_controller_did_is_counted(
    scenario: Callable[[Harness], Awaitable[None]],
    controllers: tuple[str, ...],
    name: str,
    labels: dict[str, str],
    value: float,
) -> None:
    async def counted(cluster: Harness) -> None:
        await scenario(cluster)
        assert cluster.manager.metrics.registry.get_sample_value(name, labels) == value

    run(counted, *controllers)


def test_endpoint_slices_are_counted_without_the_usual_ending() -> None:
    async def counted(cluster: Harness) -> None:
        await service(cluster)
        text = cluster.manager.metrics.exposition().decode()
        assert "# TYPE endpoint_slice_controller_syncs counter" in text
        assert 'endpoint_slice_controller_syncs{result="success"} ' in text

    run(counted, "endpointslice-controller")


@pytest.mark.parametrize(
    ("controller", "queue"),
    [("deployment-controller", "deployment"), ("replicationcontroller-controller", "replicationmanager")],
)
def test_queues_have_the_names_that_dashboards_know(controller: str, queue: str) -> None:
    async def named(cluster: Harness) -> None:
        labels = {"name": queue}
        assert cluster.manager.metrics.registry.get_sample_value("workqueue_adds_total", labels) is not None
        assert cluster.manager.metrics.registry.get_sample_value("workqueue_unfinished_work_seconds", labels) == 0

    run(named, controller)


def test_what_is_counted_goes_on_when_a_controller_starts_again() -> None:
    async def counted(cluster: Harness) -> None:
        await finished_job(cluster)
        await cluster.manager.set_mode(JOB, "off")
        await cluster.manager.set_mode(JOB, "run")
        await cluster.settle()
        found = cluster.manager.metrics.registry.get_sample_value(
            "job_controller_job_pods_finished_total", {**NON_INDEXED, "result": "succeeded"}
        )
        assert found == 1

    run(counted, JOB)
