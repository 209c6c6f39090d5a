"""Each bad fault is refused with its sentence, however it comes, and the good ones that come with it are not added."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from fakeapiserver import Cluster
from fakeapiserver.cli.control import remote
from fakeapiserver.cli.control.faults import main
from tests.faults.bad_rules import BAD_RULES
from tests.plain_client import Client

_LARGEST = 10**300
GOOD = {"verb": "list", "resource": "pods", "status": 503}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


def _is_json(fields: dict[str, Any]) -> bool:
    """Reports whether the fields arrive as they are: NaN and numbers beyond float64 are refused as no JSON, and 1.0 becomes 1."""
    return not any(
        isinstance(value, int | float) and (abs(value) > _LARGEST or math.isnan(value) or _is_whole(value))
        for value in fields.values()
    )


def _is_whole(value: float) -> bool:
    return isinstance(value, float) and value.is_integer()


ROWS = [(fields, sentence) for fields, sentence in BAD_RULES if _is_json(fields)]


@pytest.mark.parametrize(("fields", "sentence"), ROWS)
def test_over_http(cluster: Cluster, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HTTPError) as refused:
        Client(cluster).ask("POST", "/fakeapiserver/faults", [GOOD, fields, GOOD])
    assert refused.value.code == 422
    _check(json.loads(refused.value.read())["message"].removeprefix("fault 2: "), sentence)
    assert cluster.faults.list() == []


@pytest.mark.parametrize(("fields", "sentence"), BAD_RULES)
def test_in_python(cluster: Cluster, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as refused:
        cluster.faults.add(**fields)
    _check(str(refused.value), sentence)
    assert cluster.faults.list() == []


@pytest.mark.parametrize(("fields", "sentence"), ROWS)
def test_in_a_file(
    cluster: Cluster,
    fields: dict[str, Any],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = {"kubeconfig": cluster.kubeconfig}
    monkeypatch.setattr(remote.background.Server, "facts", lambda _: facts)
    file = tmp_path / "faults.yaml"
    file.write_text(json.dumps([GOOD, fields, GOOD]))
    assert main(["add", f"--faults={file}"]) == 2
    _check(capsys.readouterr().err.removeprefix(f"fakeapiserver: {file}: fault 2: ").rstrip("\n"), sentence)
    assert cluster.faults.list() == []


def _check(text: str, sentence: str) -> None:
    assert text.startswith(sentence)
    assert "\n" not in text
