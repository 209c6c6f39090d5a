"""Replays the recorded exchanges through several API servers on one etcd, each request at the next server.

    python -m conformance.compare.shared_etcd --assets DIR [--servers real,ours] [--area AREA] [--first N] [--pause SECONDS]

`--servers` are real and our ones in the order of their turns; `real,real` shows what differs since servers learn from each other only by
watching. `--first 1` begins each scenario at the second server. Each area has servers of its own, with its flags and
those that follow `--`. Prints what differs from the recorded answers, and a table.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from conformance.bench.servers import TOKEN
from conformance.exchange import Client, scenarios
from conformance.players.credentials import RECORDED, started
from conformance.players.shared_etcd import ASSETS, OURS, REAL, Alternating, SharedEtcd, kinds
from conformance.replay import Score, replay, table

# Areas of which a server's own state is a part: older versions that the real program isn't, faults of one server, its audit log.
_LEFT_OUT: Final = ("faults", "audit", "v1.33", "v1.33-gates-off", "v1.34", "v1.35", "v1.37")


def areas(chosen: Sequence[str]) -> list[str]:
    """The chosen areas, or all that several servers can share."""
    every = dict.fromkeys(area for area, _ in scenarios())
    return list(chosen) or [area for area in every if area not in _LEFT_OUT]


def replayed(area: str, options: argparse.Namespace) -> Score:
    """Replays one area with servers of its own."""
    with started(area) as (flags, credentials):
        shared = SharedEtcd(options.servers, options.assets, [*flags, *options.flags], [RECORDED])
        try:
            shared.start()
            clients = [Client(server.url, TOKEN, credentials) for server in shared.servers]
            client = Alternating(
                clients[0].url, TOKEN, credentials, clients=clients, first=options.first, pause=options.pause
            )
            return replay(client, [area], patient=True)[area]
        finally:
            shared.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get(ASSETS)
    parser.add_argument("--assets", type=Path, default=default, required=not default, help=f"(default: ${ASSETS})")
    parser.add_argument("--servers", type=kinds, default=[REAL, OURS], help="(real,ours)")
    parser.add_argument("--area", action="append", default=[])
    parser.add_argument(
        "--first", type=int, default=0, help="the server of each scenario's first request (%(default)s)"
    )
    parser.add_argument("--pause", type=float, default=0.0, help="seconds before each request (%(default)s)")
    parser.add_argument("flags", nargs="*", help="of all servers, e.g. -- --storage-media-type=application/json")
    options = parser.parse_args()
    scores: dict[str, Score] = {}
    for area in areas(options.area):
        began = time.monotonic()
        try:
            score = replayed(area, options)
        except RuntimeError as error:
            print(f"{area}: {error}", file=sys.stderr, flush=True)
            continue
        scores[area] = score
        seconds = time.monotonic() - began
        for scenario, i, line, found in score.misses:
            server = options.servers[(options.first + i) % len(options.servers)]
            print(f"{area}/{scenario}[{i}] at the {server} server: {line[:120]}\n    {found[:600]}", flush=True)
        print(f"{area}: {score.equal} of {score.total} ({seconds:.0f} s)", file=sys.stderr, flush=True)
    print(table(scores))
    return 0


if __name__ == "__main__":
    sys.exit(main())
