"""Health, status pages and metrics of a running server."""

import re
from collections.abc import Iterator

import pytest

from conformance.exchange import Client
from fakeapiserver.apis.feature_gates import DEFAULT_GATES, FeatureGates
from fakeapiserver.server.exposition import content_type
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.pages.health import checks_of
from fakeapiserver.testing.background import running_server


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with running_server() as found:
        yield found


@pytest.fixture
def client(server: LocalServer) -> Client:
    return Client(server.url, server.admin_token)


def text(client: Client, path: str, method: str = "GET") -> tuple[int, str]:
    answer = client.send({"method": method, "path": path, "accept": "*/*"}, [])
    return answer["status"], answer.get("text", "")


@pytest.mark.parametrize(
    ("path", "status", "expected"),
    [
        ("/healthz", 200, "ok"),
        ("/livez/ping", 200, "ok"),
        ("/readyz/informer-sync", 200, "ok"),
        ("/livez/informer-sync", 404, "404 page not found\n"),
        ("/livez/ping/", 404, "404 page not found\n"),
        ("/readyz?exclude=nope&exclude=a", 200, "ok"),
        ("/debug", 404, "404 page not found\n"),
        ("/debug/pprof", 302, '<a href="/debug/pprof/">Found</a>.\n\n'),
        ("/debug/pprof/nope", 404, "Unknown profile\n"),
        ("/debug/flags/v", 406, "unsupported http method\n"),
        ("/logs/", 404, "404 page not found\n"),
        ("/configz", 404, "404 page not found\n"),
    ],
)
def test_fixed_texts(client: Client, path: str, status: int, expected: str) -> None:
    assert text(client, path) == (status, expected)


@pytest.mark.parametrize(
    ("verbosity", "status", "expected"),
    [
        ("4", 200, "successfully set klog.logging.verbosity to 4\n"),
        ("0", 200, "successfully set klog.logging.verbosity to 0\n"),
        ("-1", 400, 'strconv.ParseUint: parsing "-1": invalid syntax\n'),
        ("4294967296", 400, 'strconv.ParseUint: parsing "4294967296": value out of range\n'),
    ],
)
def test_verbosity_can_be_set_while_the_server_runs(client: Client, verbosity: str, status: int, expected: str) -> None:
    answer = client.send({"method": "PUT", "path": "/debug/flags/v", "text": verbosity, "accept": "*/*"}, [])
    assert (answer["status"], answer["text"]) == (status, expected)


def test_verbose_health_names_each_check_and_what_cannot_be_excluded(client: Client) -> None:
    lines = text(client, "/readyz?verbose&exclude=ping&exclude=zz&exclude=nope")[1].splitlines()
    assert lines[:2] == ["[+]ping excluded: ok", "[+]log ok"]
    assert lines[-3:] == [
        "[+]shutdown ok",
        'warn: some health checks cannot be excluded: no matches for "nope","zz"',
        "readyz check passed",
    ]


def test_status_pages(client: Client) -> None:
    assert re.search(r"\nUp  0 hr \d\d min \d\d sec\n", text(client, "/statusz")[1])
    assert "\nauthorization-mode [Node,RBAC]\n" in text(client, "/flagz")[1]
    as_statusz = "application/json;as=Statusz;g=config.k8s.io;v=v1beta1"
    answer = client.send({"method": "GET", "path": "/statusz", "accept": as_statusz}, [])
    assert answer["body"]["binaryVersion"] == "1.37.2"


def samples(page: str, name: str) -> dict[str, float]:
    found = re.findall(rf"^{name}{{(.*)}} (\S+)$", page, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def test_requests_are_counted_under_upstreams_names(client: Client) -> None:
    text(client, "/metrics", "DELETE")
    client.send({"method": "GET", "path": "/api/v1/namespaces/default/configmaps"}, [])
    client.send({"method": "GET", "path": "/api/v1/namespaces/default/configmaps/nope"}, [])
    client.send({"method": "GET", "path": "/api/v1/namespaces/default/unknowns"}, [])
    patch = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    path = "/api/v1/namespaces/default/configmaps/a?dryRun=All&fieldManager=m"
    client.send({"method": "PATCH", "path": path, "body": patch, "type": "application/apply-patch+yaml"}, [])
    _, page = text(client, "/metrics")
    rest = 'dry_run="{}",group="",resource="configmaps",scope="{}",subresource="",verb="{}",version="v1"'
    assert samples(page, "apiserver_request_total") == {
        'code="200",component="apiserver",' + rest.format("", "namespace", "LIST"): 1,
        'code="404",component="apiserver",' + rest.format("", "resource", "GET"): 1,
        'code="201",component="apiserver",' + rest.format("All", "resource", "APPLY"): 1,
    }
    assert sum(samples(page, "apiserver_request_duration_seconds_count").values()) == 3
    assert samples(page, "apiserver_request_sli_duration_seconds_count") == {
        'component="apiserver",' + rest.partition(",")[2].format(scope, verb): 1
        for scope, verb in (("namespace", "LIST"), ("resource", "GET"), ("resource", "APPLY"))
    }
    assert samples(page, "apiserver_resource_objects")['group="",resource="namespaces"'] == 4
    assert set(samples(page, "apiserver_current_inflight_requests")) == {
        'request_kind="mutating"',
        'request_kind="readOnly"',
    }


def test_what_dashboards_read_of_the_process(client: Client) -> None:
    _, page = text(client, "/metrics")
    assert list(samples(page, "version_info")) == [
        'binary="1.37.2",component="kube",emulation="1.37",min_compat="1.36"'
    ]
    (build,) = samples(page, "kubernetes_build_info")
    assert 'git_version="v1.37.2"' in build
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"):
        assert page.count(f"\n{name} ") == 1


@pytest.mark.parametrize(
    ("accept", "escaping"),
    [
        ("", "underscores"),
        ("*/*", "underscores"),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", "allow-utf-8"),
        ("text/plain;escaping=nope", "underscores"),
        ("text/plain;q=0.5,application/openmetrics-text;version=1.0.0;escaping=dots;q=0.9", "dots"),
        ("text/plain,application/openmetrics-text;version=1.0.0;escaping=dots", "underscores"),
    ],
)
def test_metrics_are_text_whatever_is_asked_for(accept: str, escaping: str) -> None:
    assert content_type(accept) == f"text/plain; version=0.0.4; charset=utf-8; escaping={escaping}"


def test_a_watch_runs_until_it_ends(client: Client, server: LocalServer) -> None:
    text(client, "/metrics", "DELETE")
    client.send({"method": "GET", "path": "/api/v1/nodes?watch=1&timeoutSeconds=1"}, [])
    _, page = text(client, "/metrics")
    labels = 'component="apiserver",group="",resource="nodes",scope="cluster",subresource="",verb="WATCH",version="v1"'
    assert samples(page, "apiserver_longrunning_requests")[labels] == 0
    assert [name for name in samples(page, "apiserver_request_total") if "WATCH" in name]


def test_health_checks_are_counted(client: Client) -> None:
    text(client, "/livez")
    _, page = text(client, "/metrics/slis")
    assert samples(page, "kubernetes_healthcheck")['name="ping",type="livez"'] == 1


def test_a_server_has_asked_itself_whether_it_is_ready_before_anybody_else_does() -> None:
    with running_server() as server:
        _, page = text(Client(server.url, server.admin_token), "/metrics/slis")
        counted = samples(page, "kubernetes_healthcheck")
        assert counted['name="etcd-readiness",type="readyz"'] == 1
        assert not [labels for labels in counted if "readyz" not in labels]


@pytest.mark.parametrize(
    ("gate", "by_default", "hooks"),
    [
        ("APIServerIdentity", True, 2),
        ("CoordinatedLeaderElection", False, 1),
        ("UnknownVersionInteroperabilityProxy", True, 1),
        ("WatchCacheInitializationPostStartHook", True, 1),
    ],
)
def test_checks_follow_gates(gate: str, by_default: bool, hooks: int) -> None:
    usual = len(checks_of("readyz", DEFAULT_GATES))
    flipped = FeatureGates(switched={gate: not by_default})
    assert len(checks_of("readyz", flipped)) == usual + (-hooks if by_default else hooks)


def test_a_server_without_identity_has_no_lease() -> None:
    with running_server(
        feature_gates={"APIServerIdentity": False, "UnknownVersionInteroperabilityProxy": False}
    ) as server:
        leases = "/apis/coordination.k8s.io/v1/leases"
        answer = Client(server.url, server.admin_token).send({"method": "GET", "path": leases}, [])
        assert answer["body"]["items"] == []
