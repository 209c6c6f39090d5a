"""`fakeapiserver controller-manager`: kube-controller-manager's flags, and the controllers against a server of another process."""

import asyncio
import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from conformance.bench.servers import free_port
from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.apis.recorded import NEWEST, read_table
from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.controller_manager import command as controller_manager
from fakeapiserver.cli.controller_manager.configuration import PLACES, configuration, flag_texts
from fakeapiserver.client import kubeconfig, wait
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest import RESTClient

LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")


def test_flags_are_kube_controller_managers() -> None:
    options = controller_manager.parse(
        [
            "--controllers=*,-serviceaccount",
            "--concurrent-gc-syncs",
            "3",
            "--namespace-sync-period=1m30s",
            "--leader-elect=false",
            "--use-service-account-credentials",
            "--node-eviction-rate=0.5",
        ]
    )
    assert options.controllers == ("*", "-serviceaccount")
    assert options.leader_elect is False
    found = options.configuration
    assert (found.concurrent_gc_syncs, found.namespace_sync_period, found.node_eviction_rate) == (3, 90.0, 0.5)
    assert found.use_service_account_credentials
    assert not options.warnings


def test_a_flag_without_effect_is_reported() -> None:
    assert controller_manager.parse(["--cloud-provider=external"]).warnings == [
        "--cloud-provider is kube-controller-manager's, but has no effect here"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--concurrent-gc-sync=3"], "unknown flag: --concurrent-gc-sync"),
        (
            ["--concurrent-gc-syncs=many"],
            'invalid argument "many" for "--concurrent-gc-syncs" flag: strconv.ParseInt: parsing "many": invalid syntax',
        ),
        (["--controllers=deploymnt"], '--controllers: "deploymnt" is not in the list of known controllers'),
        (
            ["--controllers=deploymnt,-foo"],
            '--controllers: ["deploymnt" is not in the list of known controllers, "foo" is not in the list of known controllers]',
        ),
        (["--namespace-sync-period"], "flag needs an argument: --namespace-sync-period"),
        (["deployment"], '"kube-controller-manager" does not take any arguments, got ["deployment"]'),
        (
            ["--concurrent-disruption-syncs=many"],  # one that has no effect here
            'invalid argument "many" for "--concurrent-disruption-syncs" flag: strconv.ParseInt: parsing "many": invalid syntax',
        ),
        (
            ["--secure-port=70000"],
            "--secure-port 70000 must be between 0 and 65535, inclusive. 0 for turning off secure port.",
        ),
        (
            ["--leader-elect-resource-lock=endpoints"],
            'resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        ),
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        controller_manager.parse(arguments)
    assert str(raised.value) == message


async def _account(config: str, name: str, namespace: str) -> None:
    async with RESTClient(kubeconfig.load(config)) as rest:
        accounts = DynamicClient(rest).resource(ACCOUNTS, namespace)
        await wait.until(accounts, lambda account: account is not None, name=name, timeout=120)


def _table() -> dict[str, Any]:
    return read_table(NEWEST, "controller_manager_flags.json")  # type: ignore[no-any-return]


def test_defaults_are_those_of_the_real_one() -> None:
    """Each default of a flag, read and shown again, is the value that the real one's configuration has."""
    table = _table()
    given = {name: text.strip("[]") for name, text in table["defaults"].items() if name in PLACES}
    assert (
        configuration({**table, "flags": {**table["flags"], **controller_manager._HIDDEN}}, given)
        == table["configuration"]
    )
    options = controller_manager.parse([])
    heeded = {**controller_manager._SETTINGS, **controller_manager._OPTIONS}
    for name in heeded.keys() & table["defaults"].keys() - {"controllers", "help", "version", "feature-gates"}:
        holder = options.configuration if name in controller_manager._SETTINGS else options
        parsed = (
            controller_manager.parse([f"--{name}={table['defaults'][name].strip('[]')}"])
            if table["defaults"][name]
            else options
        )
        read = parsed.configuration if name in controller_manager._SETTINGS else parsed
        assert getattr(read, heeded[name].name) == getattr(holder, heeded[name].name), name


@pytest.mark.parametrize(
    ("name", "given", "text", "value"),
    [
        ("namespace-sync-period", "90s", "1m30s", "1m30s"),
        ("leader-elect", "F", "false", False),
        ("controllers", "*, -job", "[*,-job]", ["*", "-job"]),
        ("node-eviction-rate", "0.50", "0.5", 0.5),
        ("concurrent-gc-syncs", "7", "7", 7),
    ],
)
def test_flags_are_shown_as_go_shows_them(name: str, given: str, text: str, value: object) -> None:
    assert flag_texts(_table(), {name: given})[name] == text
    found: Any = configuration(_table(), {name: given})
    for step in PLACES[name].split("."):
        found = found[step]
    assert found == value


@contextmanager
def _running(cluster: Cluster, *flags: str) -> Iterator[str]:
    """A manager of a process of its own, by its URL."""
    port = free_port()
    command = [sys.executable, "-m", "fakeapiserver", "controller-manager", f"--secure-port={port}", *flags]
    process = subprocess.Popen([*command, f"--kubeconfig={cluster.kubeconfig}", "--bind-address=127.0.0.1"])
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        assert process.wait(60) == 0


def _get(url: str, token: str = "") -> tuple[int, str]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_it_leads_as_service_accounts_and_serves_its_status_to_authorized_users() -> None:
    with Cluster(controllers=("none",)) as cluster:
        config = cluster.kubeconfig
        with _running(
            cluster,
            "--use-service-account-credentials",
            "--controllers=serviceaccount,nodeipam",  # the second has nothing to do without --allocate-node-cidrs
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
        ) as url:
            asyncio.run(_account(config, "default", "kube-public"))
            asyncio.run(_account(config, "service-account-controller", "kube-system"))
            admin = cluster.token
            assert _get(f"{url}/healthz?verbose") == (
                200,
                "[+]leaderElection ok\n[+]serviceaccount-controller ok\nhealthz check passed\n",
            )
            # as the real one was seen to answer
            for path, nobody, stranger, administrator in (
                ("/healthz", 200, 401, 200),
                ("/livez", 404, 401, 404),
                ("/healthz/leaderElection", 403, 401, 404),
                ("/metrics", 403, 401, 200),
                ("/metrics/slis", 403, 401, 200),
                ("/configz", 403, 401, 200),
                ("/flagz", 403, 401, 200),
                ("/statusz", 403, 401, 200),
                ("/version", 404, 401, 404),
                ("/nothing", 403, 401, 404),
            ):
                found = (_get(url + path)[0], _get(url + path, "not-a-token")[0], _get(url + path, admin)[0])
                assert found == (nobody, stranger, administrator), path
            assert 'cannot get path \\"/metrics\\"' in _get(f"{url}/metrics")[1]
            metrics = _get(f"{url}/metrics", admin)[1]
            assert 'workqueue_adds_total{name="serviceaccount"}' in metrics
            assert 'rest_client_request_duration_seconds_count{host="' in metrics
            assert "kubernetes_build_info{build_date=" in metrics
            assert 'leader_election_master_status{name="kube-controller-manager"} 1' in metrics
            shown = json.loads(_get(f"{url}/configz", admin)[1])["kubecontrollermanager.config.k8s.io"]
            assert shown["Generic"]["Controllers"] == ["serviceaccount", "nodeipam"]
            assert "Paths" in _get(f"{url}/statusz", admin)[1]
            lease = json.loads(
                _kubernetes(
                    cluster, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
                )
            )
            assert lease["spec"]["holderIdentity"]


def test_who_has_lost_its_lease_ends_at_once() -> None:
    with Cluster(controllers=("none",)) as cluster:
        command = [sys.executable, "-m", "fakeapiserver", "controller-manager", f"--kubeconfig={cluster.kubeconfig}"]
        times = [
            "--leader-elect-lease-duration=30s",
            "--leader-elect-renew-deadline=20s",
            "--leader-elect-retry-period=200ms",
        ]
        process = subprocess.Popen(
            [*command, *times, "--secure-port=0", "--controllers=serviceaccount"], stderr=subprocess.PIPE, text=True
        )
        asyncio.run(_account(cluster.kubeconfig, "default", "kube-public"))

        async def take_over() -> None:
            async with RESTClient(kubeconfig.load(cluster.kubeconfig)) as rest:
                leases = DynamicClient(rest).resource(LEASES, "kube-system")
                await leases.patch("kube-controller-manager", {"spec": {"holderIdentity": "another"}})

        asyncio.run(take_over())
        assert process.wait(60) == 1
        assert process.stderr is not None
        with process.stderr as told:
            assert "leaderelection lost" in told.read()


def test_without_kubeconfigs_no_user_is_known() -> None:
    with (
        Cluster(controllers=("none",)) as cluster,
        _running(cluster, "--controllers=serviceaccount", "--leader-elect=false") as url,
    ):
        asyncio.run(_account(cluster.kubeconfig, "default", "kube-public"))
        assert _get(f"{url}/healthz?verbose", "not-a-token") == (
            200,
            "[+]serviceaccount-controller ok\nhealthz check passed\n",
        )
        assert _get(f"{url}/metrics", cluster.token)[0] == 403


def _kubernetes(cluster: Cluster, path: str) -> bytes:
    request = urllib.request.Request(cluster.url + path, headers={"Authorization": f"Bearer {cluster.token}"})
    with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
        found: bytes = answer.read()
        return found
