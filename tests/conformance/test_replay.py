"""The recorded exchanges, replayed against a cluster of this package: each area keeps the share it has reached."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import exchange, replay
from conformance.players.credentials import started, with_version
from fakeapiserver.cli.flags import parse
from fakeapiserver.cluster import Cluster

# The areas that a change is tried with at once, a second or two each; the others are slow.
QUICK = (
    "abac",
    "alwaysallow",
    "alwaysdeny",
    "apply",
    "owners",
    "patches",
    "printing",
    "service-account",
    "subresources",
)
FLOORS = json.loads((exchange.HERE / "floors.json").read_text())


@pytest.fixture
def client(tmp_path: Path, area: str) -> Iterator[exchange.Client]:
    """Yields a client of a fresh server with the area's flags, as the user of the recordings."""
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('conformance,admin,1,"system:masters"\n')
    with started(area) as (flags, credentials):
        config = parse([f"--token-auth-file={tokens}", "--controllers=none", *with_version(flags)]).config
        with Cluster.from_config(config) as cluster:
            yield exchange.Client(cluster.url, "conformance", credentials)


@pytest.mark.parametrize(
    "area",
    [
        pytest.param(area, marks=() if area in QUICK else pytest.mark.slow)
        for area in sorted({area for area, _ in exchange.scenarios()})
    ],
)
def test_answers_equal_the_real_servers(client: exchange.Client, area: str) -> None:
    scores = replay.replay(client, [area])
    score = scores[area]
    print(replay.table(scores))
    assert score.percent >= FLOORS[area], "\n".join(
        f"{miss[0]}[{miss[1]}] {miss[2]}: {miss[3]}"[:200] for miss in score.misses[:20]
    )


def test_every_scenario_is_recorded_and_every_area_has_a_floor() -> None:
    for area, path in exchange.scenarios():
        answers = exchange.recorded(path)
        assert len(answers) == len(json.loads(path.read_text())["requests"])
        assert area in FLOORS


@pytest.mark.parametrize(
    ("expected", "got", "found"),
    [
        ({"status": 200, "body": {"a": 1}}, {"status": 200, "body": {"a": 1}}, ""),
        ({"status": 200}, {"status": 404}, "status: 200 != 404"),
        ({"body": {"a": [1, 2]}}, {"body": {"a": [1]}}, "body.a: 2 items, got 1: [1, 2] != [1]"),
        ({"body": {"a": 1}}, {"body": {"a": True}}, "body.a: 1 != true"),
        ({"body": {"metadata": {"uid": "x"}}}, {"body": {"metadata": {}}}, 'body.metadata.uid: "x" != null'),
        ({"body": {"t": "2026-01-01T00:00:00Z"}}, {"body": {"t": "2027-02-02T00:00:00Z"}}, ""),
        ({"body": {"age": "5s"}}, {"body": {"age": "2m10s"}}, ""),
    ],
)
def test_a_difference_is_found_and_named(expected: exchange.Answer, got: exchange.Answer, found: str) -> None:
    assert exchange.difference(expected, got) == found
