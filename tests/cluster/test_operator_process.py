"""`cluster.operator_process(command)`: operators in any language, as processes next to each other."""

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakeapiserver import AsyncCluster, Cluster
from fakeapiserver.cluster.processes.operator_process import OperatorDoesNotStart
from tests.site.blocks import DOCS, blocks_of
from tests.sweep import webhook_operator

OPERATOR = [sys.executable, webhook_operator.__file__, "{webhook-port}"]
OPTIONS: dict[str, Any] = {
    "webhooks": webhook_operator.CONFIGURATIONS,
    "crds": Path(webhook_operator.__file__).parent / "database-crd.yaml",
}
DATABASE = {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "db"}}
# An operator that asks once, and shows its arguments at a port.
ASKING = """
import asyncio, http.server, os, sys
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.discovery import DiscoveryClient
from fakeapiserver.client.rest import RESTClient
config = kubeconfig.load(os.environ["KUBECONFIG"])
print("asking", sys.argv[1:], flush=True)
async def ask():
    async with RESTClient(config) as client:
        await DiscoveryClient(client).server_version()
asyncio.run(ask())
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
server.serve_forever()
"""


def test_the_block_begins_when_its_webhooks_answer_and_leaves_nothing() -> None:
    with Cluster(**OPTIONS) as cluster:
        with cluster.operator_process(OPERATOR, env={"RAN_AS": "process"}) as operator:
            cluster.apply(DATABASE)
            cluster.settle(with_=operator.user)
            config = cluster.get("cm/db-config")
            assert (config["data"], config["metadata"]["labels"]) == ({"size": "2"}, {"ran-as": "process"})
            pid, folder = operator._process._process.pid, operator._process._folder
            assert folder.exists()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert not folder.exists()


def test_a_killed_operator_is_started_again_with_the_same_ports() -> None:
    command = [sys.executable, "-c", ASKING, "{port:health}"]
    with (
        Cluster(controllers=()) as cluster,
        cluster.operator_process(command, ready="http://127.0.0.1:{port:health}/") as operator,
    ):
        ports = operator.ports
        operator.kill()
        assert operator.exit_code is None
        operator.start()
        assert operator.ports == ports
        assert operator.log.count(f"asking ['{ports['health']}']") == 2
        with cluster.operator_process(command, ready="http://127.0.0.1:{port:health}/") as other:
            assert other.ports != ports
            assert other.user != operator.user
            assert len(cluster.requests.by(user=other.user)) == 1


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("print('no configuration'); raise SystemExit(3)", "ended with exit code 3; its last lines:\nno configuration"),
        ("print('waiting', flush=True); import time; time.sleep(60)", "has sent no request within 1.5 s"),
    ],
)
def test_an_operator_that_does_not_start(code: str, sentence: str) -> None:
    with Cluster(controllers=()) as cluster:
        operator = cluster.operator_process([sys.executable, "-c", code], timeout=1.5)
        with pytest.raises(OperatorDoesNotStart) as caught, operator:
            pass
        assert sentence in str(caught.value)


def test_mistakes() -> None:
    with Cluster(controllers=()) as cluster:
        with pytest.raises(ValueError, match="the operator's command is empty"):
            cluster.operator_process("")
        with pytest.raises(FileNotFoundError, match=r"there is no program '\./bin/missing'"):
            cluster.operator_process("./bin/missing").start()
        with pytest.raises(ValueError, match=r"\{webhook-port\} needs webhooks"):
            cluster.operator_process(OPERATOR).start()


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "testing.md").read_text()
    section = page.partition("## Operators in other languages")[2].partition("\n## ")[0]
    [block] = [found.text for found in blocks_of("testing.md", section) if found.language == "python"]
    for folder in ("bin", "config/crd/bases", "config/webhook"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bin/manager").write_text(f'#!/bin/sh\nexec {sys.executable} {webhook_operator.__file__} "$@"\n')
    (tmp_path / "bin/manager").chmod(0o755)
    shutil.copy(OPTIONS["crds"], tmp_path / "config/crd/bases")
    (tmp_path / "config/webhook/manifests.yaml").write_text(yaml.safe_dump_all(webhook_operator.CONFIGURATIONS))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(block, names)
    with Cluster(**names["OPTIONS"]) as cluster:
        names["test_a_database_survives_a_crash"](cluster)


async def _asynchronous() -> None:
    async with AsyncCluster(**OPTIONS) as cluster, cluster.operator_process(OPERATOR) as operator:
        await cluster.apply(DATABASE)
        await cluster.settle(with_=operator.user)
        assert (await cluster.get("cm/db-config"))["data"] == {"size": "2"}


def test_in_an_event_loop() -> None:
    asyncio.run(_asynchronous())
