"""Metrics and probes of a manager have the names, types, labels and words of controller-runtime 0.24.1."""

import asyncio
import ssl
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fakeapiserver import Cluster
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.wait import poll_until
from fakeapiserver.controller_runtime import (
    CacheOptions,
    Manager,
    ManagerOptions,
    ReconcilerFunc,
    Request,
    controller_managed_by,
    gvk,
)
from fakeapiserver.controller_runtime.healthz import Checker, Health, ping
from fakeapiserver.controller_runtime.http_server import Receive, Scope, Send, respond
from fakeapiserver.controller_runtime.metrics import Metrics
from fakeapiserver.controller_runtime.webhook.admission import HandlerFunc, Webhook
from fakeapiserver.controller_runtime.webhook.admission import Request as AdmissionRequest
from fakeapiserver.controller_runtime.webhook.admission import Response as AdmissionResponse
from fakeapiserver.controller_runtime.webhook.server import WebhookServer
from fakeapiserver.transport.certificates import create_authority, issue_server

CONFIG_MAP = gvk("v1", "ConfigMap")
CONTROLLER, QUEUE, WEBHOOK = ("controller",), ("controller", "name"), ("webhook",)
# As a manager in Go shows them that leads, has reconciled and has answered a webhook; go_ and process_ left out.
NAMES = {
    ("certwatcher_read_certificate_errors_total", "counter", ()),
    ("certwatcher_read_certificate_total", "counter", ()),
    ("controller_runtime_active_workers", "gauge", CONTROLLER),
    ("controller_runtime_conversion_webhook_panics_total", "counter", ()),
    ("controller_runtime_max_concurrent_reconciles", "gauge", CONTROLLER),
    ("controller_runtime_reconcile_errors_total", "counter", CONTROLLER),
    ("controller_runtime_reconcile_panics_total", "counter", CONTROLLER),
    ("controller_runtime_reconcile_time_seconds", "histogram", CONTROLLER),
    ("controller_runtime_reconcile_timeouts_total", "counter", CONTROLLER),
    ("controller_runtime_reconcile_total", "counter", (*CONTROLLER, "result")),
    ("controller_runtime_terminal_reconcile_errors_total", "counter", CONTROLLER),
    ("controller_runtime_webhook_latency_seconds", "histogram", WEBHOOK),
    ("controller_runtime_webhook_panics_total", "counter", ()),
    ("controller_runtime_webhook_requests_in_flight", "gauge", WEBHOOK),
    ("controller_runtime_webhook_requests_total", "counter", ("code", *WEBHOOK)),
    ("leader_election_master_status", "gauge", ("name",)),
    ("rest_client_requests_total", "counter", ("code", "host", "method")),
    ("workqueue_adds_total", "counter", QUEUE),
    ("workqueue_depth", "gauge", (*QUEUE, "priority")),
    ("workqueue_longest_running_processor_seconds", "gauge", QUEUE),
    ("workqueue_queue_duration_seconds", "histogram", QUEUE),
    ("workqueue_retries_total", "counter", QUEUE),
    ("workqueue_unfinished_work_seconds", "gauge", QUEUE),
    ("workqueue_work_duration_seconds", "histogram", QUEUE),
}


async def fetched(port: int, path: str, body: bytes = b"", tls: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    method = "POST" if body else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = (await reader.read()).decode()
    writer.close()
    head, _, text = answer.partition("\r\n\r\n")
    return int(head.split()[1]), text


async def between_tries(port: int) -> str:
    """The metrics while nothing is in the queue: what is tried again and again may just be due, before a worker takes it."""
    _, text = await fetched(port, "/metrics")
    while shown(text)[1]["workqueue_depth{controller=configmap,name=configmap,priority=-100}"]:
        _, text = await fetched(port, "/metrics")
    return text


def shown(text: str) -> tuple[set[tuple[str, str, tuple[str, ...]]], dict[str, float]]:
    """(name, type, labels) of all that isn't the process', and the samples by their text."""
    names, values = set(), {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        for sample in family.samples:
            labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
            values[f"{sample.name}{{{labels}}}"] = sample.value
            if not name.startswith("process_"):
                names.add((name, family.type, tuple(sorted(sample.labels.keys() - {"le"}))))
    return names, values


def test_metrics(fake_cluster: Cluster, tmp_path: Path) -> None:
    async def reconcile(request: Request) -> None:
        if request.name == "a":
            raise KeyError("a mistake")

    async def decide(request: AdmissionRequest) -> AdmissionResponse:
        raise KeyError("a mistake")

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        await respond(send, 200, b"hello")

    async def scenario() -> None:
        pair = issue_server(create_authority(), ["localhost"])
        (tmp_path / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / "tls.key").write_bytes(pair.key)
        options = ManagerOptions(
            cache=CacheOptions(namespaces=["default"]),
            metrics_bind_address="127.0.0.1:0",
            leader_election=True,
            leader_election_id="operator",
            webhook_server=WebhookServer(host="127.0.0.1", port=0, cert_dir=tmp_path, reload_period=3600),
        )
        manager = Manager(kubeconfig.load(fake_cluster.kubeconfig), options)
        manager.webhook_server.register("/decide", Webhook(HandlerFunc(decide)))
        manager.add_metrics_server_extra_handler("/hello", page)
        controller_managed_by(manager).for_(CONFIG_MAP).complete(ReconcilerFunc(reconcile))
        for name in "ab":
            await manager.client.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
            )
        running = asyncio.ensure_future(manager.run())
        await manager.elected.wait()
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        review = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1"}}'
        status, _ = await fetched(manager.webhook_server.port, "/decide", review, tls)
        assert status == 200
        assert manager.metrics_server is not None
        port = manager.metrics_server.port

        async def has_reconciled() -> bool:
            errors = manager.metrics.reconcile_errors.labels("configmap")
            return errors._value.get() >= 3  # type: ignore[attr-defined, no-any-return]

        await poll_until(has_reconciled, interval=0.01, timeout=60)
        text = await between_tries(port)
        names, values = shown(text)
        assert names == NAMES
        assert "_created" not in text
        assert values["controller_runtime_reconcile_panics_total{controller=configmap}"] >= 3
        assert values["workqueue_retries_total{controller=configmap,name=configmap}"] >= 3
        assert values["controller_runtime_webhook_requests_total{code=200,webhook=/decide}"] == 1
        assert values["controller_runtime_webhook_requests_total{code=500,webhook=/decide}"] == 0
        assert values["controller_runtime_webhook_panics_total{}"] == 1
        assert values["certwatcher_read_certificate_total{}"] == 1
        assert values["leader_election_master_status{name=operator}"] == 1
        host = manager.config.host.partition("//")[2]
        assert values[f"rest_client_requests_total{{code=201,host={host},method=POST}}"] >= 3  # the Lease, too
        assert await fetched(port, "/hello") == (200, "hello")
        assert await fetched(port, "/") == (404, "404 page not found\n")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())


def test_numbers_and_texts_are_written_as_prometheus_reads_them() -> None:
    metrics = Metrics()
    metrics.count_request("<error>", "GET", 'a"b\\c\nd', 0.01)
    metrics.leader.labels("x").set(0.25)
    text = metrics.exposition().decode()
    assert 'rest_client_requests_total{code="<error>",host="a\\"b\\\\c\\nd",method="GET"} 1\n' in text
    assert 'leader_election_master_status{name="x"} 0.25\n' in text
    assert "# TYPE rest_client_requests_total counter\n" in text


def broken() -> None:
    raise ValueError("secret reason")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/healthz", (200, "ok")),
        ("/healthz/", (200, "ok")),
        ("/healthz/ping", (200, "ok")),
        ("/healthz/nope", (404, "404 page not found\n")),
        ("/healthz?verbose", (200, "[+]ping ok\nhealthz check passed\n")),
        ("/healthz?exclude=ping", (200, "ok")),
        ("/healthz?exclude=ping&verbose", (200, "[+]ping excluded: ok\nhealthz check passed\n")),
        (
            "/healthz?exclude=zz&verbose=true",
            (
                200,
                '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "zz"\nhealthz check passed\n',
            ),
        ),
        ("/readyz", (500, "[-]db failed: reason withheld\n[+]ping ok\nhealthz check failed\n")),
        ("/readyz/ping", (200, "ok")),
        ("/readyz/db", (500, "internal server error: secret reason\n")),
        ("/readyz?exclude=db", (200, "ok")),
        ("/readyz?exclude=db&verbose", (200, "[+]db excluded: ok\n[+]ping ok\nhealthz check passed\n")),
        ("/livez", (404, "404 page not found\n")),
        ("/", (404, "404 page not found\n")),
    ],
)
def test_probes(target: str, expected: tuple[int, str]) -> None:
    health = Health()
    health.add_healthz_check("ping", ping)
    health.add_readyz_check("ping", ping)
    health.add_readyz_check("db", broken)
    assert asyncio.run(answered(health, target)) == expected


def test_a_probe_without_checks_is_not_there() -> None:
    assert asyncio.run(answered(Health(), "/healthz"))[0] == 404


async def answered(health: Health, target: str) -> tuple[int, str]:
    path, _, query = target.partition("?")
    messages = []

    async def send(message: dict[str, object]) -> None:
        messages.append(message)

    async def receive() -> dict[str, object]:
        raise AssertionError("no test reads a body")

    await health({"type": "http", "path": path, "query_string": query.encode()}, receive, send)
    head, body = messages
    assert isinstance(head["status"], int)
    assert isinstance(body["body"], bytes)
    return head["status"], body["body"].decode()


def test_checks_may_wait() -> None:
    async def slow() -> None:
        await asyncio.sleep(0)
        raise ValueError("late")

    health = Health()
    check: Checker = slow
    health.add_readyz_check("slow", check)
    assert asyncio.run(answered(health, "/readyz/slow")) == (500, "internal server error: late\n")
