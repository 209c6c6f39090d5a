"""`fakeapiserver diff-versions`: two minor versions, and a command on both."""

import json
import sys
from typing import Any

import pytest

from fakeapiserver.cli import main

# Creates a namespace, Endpoints, and a Workload of the version that only 1.35 has.
SUITE = """
import asyncio
from contextlib import suppress
from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError
from fakeapiserver.client.rest import RESTClient

async def main():
    async with RESTClient(kubeconfig.load()) as rest:
        client = DynamicClient(rest)
        print("the suite begins")
        await client.resource(GroupVersionResource("", "v1", "namespaces")).create({"metadata": {"name": "shop"}})
        await client.resource(GroupVersionResource("", "v1", "endpoints"), "shop").create({"metadata": {"name": "e"}})
        leases = client.resource(GroupVersionResource("coordination.k8s.io", "v1", "leases"), "shop")
        with suppress(StatusError):
            await leases.create({"metadata": {"name": "l"}, "spec": {"strategy": "OldestEmulationVersion"}})
        policies = client.resource(GroupVersionResource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies"))
        with suppress(StatusError):
            await policies.delete("none")

asyncio.run(main())
"""


def test_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff-versions", "1.35", "1.36.0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Kubernetes v1.35.4 -> v1.36.3"
    assert "  - workloads.scheduling.k8s.io v1alpha1" in lines
    assert "  ~ MutatingAdmissionPolicy (beta, off -> GA, on)" in lines


def test_a_command_on_both(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff-versions", "1.35", "1.36", "--output=json", "--", sys.executable, "-c", SUITE]) == 3
    out, err = capfd.readouterr()
    found: dict[str, Any] = json.loads(out)
    assert err.count("the suite begins") == 3  # the third trial shows what differs by chance
    assert found["statuses"] == [0, 0]
    (refused,) = found["refusals"][0]
    assert refused["times"] == 1
    assert (refused["kind"]["resource"], refused["kind"]["status"]) == (
        "mutatingadmissionpolicies.admissionregistration.k8s.io v1",
        404,
    )
    assert found["warnings"] == [[], []]
    assert found["objects"] == []


# Reads the namespaces, and fails.
READER = """
import asyncio, sys
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.rest import RESTClient

async def main():
    async with RESTClient(kubeconfig.load()) as rest:
        await rest.request("GET", "/api/v1/namespaces")

asyncio.run(main())
sys.exit(4)
"""


def test_a_command_that_meets_no_difference(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff-versions", "1.35", "1.36", "--", sys.executable, "-c", READER]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines() == [
        "The command ended with exit status 4 on 1.35 and 4 on 1.36, the same.",
        "It sent 1 and 1 requests.",
        "Nothing differs.",
    ]
    assert err.count("running the command") == 2


def test_a_command_that_asks_nothing_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """This is so for pytest with fixtures, which have clusters of their own."""
    assert main(["diff-versions", "1.35", "1.36", "--", sys.executable, "-c", ""]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "the command sent no request" in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["1.35"], 2, "diff-versions needs two versions"),
        (["--nodes=1", "1.35", "1.36"], 2, "diff-versions needs two versions"),
        (["1.12", "1.36"], 2, "no recorded tables for Kubernetes 1.12"),
        (["1.35", "1.36", "--no-such"], 2, "unknown flag"),
        (["1.35", "1.36", "--kubernetes-version=1.34", "--", "true"], 2, "leave --kubernetes-version away"),
        (["1.35", "1.36", "--data-dir=x", "--", "true"], 2, "leave --data-dir away"),
        (["1.35", "1.36", "--", "no-such-command"], 127, "there is no command 'no-such-command'"),
        (["1.35", "1.36", "--", "/"], 126, "can't be executed"),
    ],
)
def test_wrong_command_lines(words: list[str], status: int, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff-versions", *words]) == status
    assert message in capfd.readouterr().err
