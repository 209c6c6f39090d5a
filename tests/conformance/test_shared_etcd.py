"""The recorded exchanges, each request at the other one of two servers of this package on one etcd.

Chosen are areas without roles and webhooks, of which a server learns only by its watch.
"""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from conformance import exchange
from conformance.bench.servers import make_keys
from conformance.players.credentials import started, with_version
from conformance.players.shared_etcd import Alternating
from conformance.replay import replay
from fakeapiserver.cli.flags import parse
from fakeapiserver.cluster import Cluster
from tests.etcd_processes import running

_TOKEN: Final = "conformance"
_FLOORS: Final = json.loads((exchange.HERE / "floors.json").read_text())


@pytest.mark.parametrize(
    ("area", "media_type"),
    [
        ("apply", "application/vnd.kubernetes.protobuf"),
        ("patches", "application/json"),
        ("printing", "application/vnd.kubernetes.protobuf"),
        ("subresources", "application/json"),
    ],
)
def test_two_servers_on_one_etcd_answer_as_one(tmp_path: Path, area: str, media_type: str) -> None:
    (tmp_path / "tokens.csv").write_text(f'{_TOKEN},admin,1,"system:masters"\n')
    make_keys(tmp_path)
    with ExitStack() as stack:
        etcd = stack.enter_context(running())
        flags, credentials = stack.enter_context(started(area))
        own = [
            f"--etcd-servers={etcd.url}",
            f"--storage-media-type={media_type}",
            f"--token-auth-file={tmp_path / 'tokens.csv'}",
            f"--service-account-signing-key-file={tmp_path / 'sa.key'}",
            f"--service-account-key-file={tmp_path / 'sa.pub'}",
            "--controllers=none",
        ]
        configs = [parse([*own, *with_version(flags)]).config for _ in range(2)]
        clusters = [stack.enter_context(Cluster.from_config(config)) for config in configs]
        clients = [exchange.Client(cluster.url, _TOKEN, credentials) for cluster in clusters]
        client = Alternating(clusters[0].url, _TOKEN, credentials, clients=clients)
        score = replay(client, [area])[area]
    assert score.percent >= _FLOORS[area], "\n".join(
        f"{scenario}[{i}] {line}: {difference}"[:300] for scenario, i, line, difference in score.misses[:20]
    )
