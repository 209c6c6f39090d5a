"""`fakeapiserver ui FILE`: the page of a saved state, with the requests that were recorded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from tests.ui.test_log_in import Browser

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_saved_state_is_shown_until_it_is_stopped(tmp_path: Path, is_recorded: bool) -> None:
    path = tmp_path / "state.json.gz"
    with Cluster(ui=is_recorded, controllers=()) as cluster:
        cluster.apply(CONFIG_MAP)
        cluster.save(path)
    command = [sys.executable, "-m", "fakeapiserver", "ui", "--output=json", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        browser = Browser(json.loads(running.stdout.readline())["url"])
        assert browser.log_in() == 303
        records = [json.loads(line) for line in browser.request("/fakeapiserver/timeline")[1].splitlines()]
        running.terminate()
        assert running.wait(60) == 0
    assert records[0]["title"] == "state.json.gz"
    assert any(record["t"] == "state" and record["name"] == "settings" for record in records)
    assert any(record["t"] == "request" and record["name"] == "settings" for record in records) is is_recorded
