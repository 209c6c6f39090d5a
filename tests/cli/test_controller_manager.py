"""`fakeapiserver controller-manager`: kube-controller-manager's flags, and the controllers against a server of another process."""

import asyncio
import json
import socket
import ssl
import subprocess
import sys
import urllib.request

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.cli import controller_manager
from fakeapiserver.cli.flags import UsageError
from fakeapiserver.client import kubeconfig, wait
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest import RESTClient

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


def test_a_flag_without_effect_is_told_of() -> None:
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
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        controller_manager.parse(arguments)
    assert str(raised.value) == message


async def _account(config: str, name: str, namespace: str) -> None:
    async with RESTClient(kubeconfig.load(config)) as rest:
        accounts = DynamicClient(rest).resource(ACCOUNTS, namespace)
        await wait.until(accounts, lambda account: account is not None, name=name)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def test_it_leads_as_service_accounts_and_tells_how_it_is() -> None:
    port = _free_port()
    with Cluster(controllers=("none",)) as cluster:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "fakeapiserver",
                "controller-manager",
                f"--kubeconfig={cluster.kubeconfig}",
                f"--secure-port={port}",
                "--use-service-account-credentials",
                "--controllers=serviceaccount",
            ]
        )
        try:
            asyncio.run(_account(cluster.kubeconfig, "default", "kube-public"))
            asyncio.run(_account(cluster.kubeconfig, "service-account-controller", "kube-system"))
            context = ssl._create_unverified_context()
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/healthz?verbose", context=context) as answer:
                assert "[+]serviceaccount-controller ok" in answer.read().decode()
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=context) as answer:
                assert (
                    'controller_runtime_reconcile_total{controller="serviceaccount-controller"'
                    in answer.read().decode()
                )
            lease = json.loads(
                _kubernetes(
                    cluster, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
                )
            )
            assert lease["spec"]["holderIdentity"]
        finally:
            process.terminate()
            assert process.wait(20) == 0


def _kubernetes(cluster: Cluster, path: str) -> bytes:
    request = urllib.request.Request(cluster.url + path, headers={"Authorization": f"Bearer {cluster.token}"})
    with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
        found: bytes = answer.read()
        return found
