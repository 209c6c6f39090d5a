"""Replays the recorded exchanges: `python -m conformance.replay`. Prints the share that is equal.

Each area gets a fresh `fakeapiserver serve`; with `--server URL --token T` all of them meet that server instead.

Compared are status, media type, warnings and the whole body, and the order of its keys where a scenario says `"keyOrder": true`; not
what a server chooses freely (uids, revisions, times, allocated addresses, continue tokens) nor the prose of column descriptions, which
is not recorded.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance import recordings
from conformance.bench.servers import TOKEN, Ours
from conformance.compare.key_order import answer_disorder
from conformance.exchange import HERE, Client, difference, recorded, run, scenarios
from conformance.players.credentials import Credentials, needs_credentials, started, with_version
from conformance.players.server_states import injects_faults


@dataclass(slots=True)
class Score:
    """The result of an area. `misses`: (scenario, index of the request, request line, first difference)."""

    equal: int = 0
    total: int = 0
    misses: list[tuple[str, int, str, str]] = field(default_factory=list)

    @property
    def percent(self) -> float:
        return 100 * self.equal / self.total if self.total else 100.0


def replay(client: Client, areas: Sequence[str] = (), *, patient: bool = False) -> dict[str, Score]:
    """Every scenario against a server; areas in order. `patient`: as `run`."""
    scores: dict[str, Score] = {}
    for area, path in scenarios(areas):
        if client.credentials is None and needs_credentials(area):
            continue
        if area == "faults" and not injects_faults(client.url, client.token):
            continue
        score = scores.setdefault(area, Score())
        scenario = recordings.scenario(path.read_text())
        requests = scenario["requests"]
        expected = recorded(path)
        for i, (request, want, got) in enumerate(
            zip(requests, expected, run(path, client, patient=patient), strict=True)
        ):
            score.total += 1
            found = difference(want, got) or (answer_disorder(want, got) if scenario.get("keyOrder") else "")
            score.equal += not found
            if found:
                score.misses.append((path.stem, i, f"{request['method']} {request['path']}", found))
    return scores


def replay_fresh(areas: Sequence[str] = ()) -> dict[str, Score]:
    """Every area against a server of its own, so that what one leaves behind isn't another's."""
    scores: dict[str, Score] = {}
    for area in dict.fromkeys(area for area, _ in scenarios(areas)):
        with started(area) as (flags, credentials):
            server = Ours(flags=with_version(flags))
            server.start()
            try:
                scores |= replay(Client(server.url, TOKEN, credentials), [area])
            finally:
                server.stop()
        print(f"{area}: {scores[area].equal} of {scores[area].total}", file=sys.stderr, flush=True)
    return scores


def table(scores: dict[str, Score]) -> str:
    rows = [f"| {area} | {score.equal} | {score.total} | {score.percent:.1f} % |" for area, score in scores.items()]
    equal, total = sum(s.equal for s in scores.values()), sum(s.total for s in scores.values())
    rows.append(f"| **all** | {equal} | {total} | {100 * equal / max(total, 1):.1f} % |")
    return "\n".join(["| area | equal | exchanges | share |", "|---|---|---|---|", *rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", metavar="URL")
    parser.add_argument("--token", help="of a user in system:masters; needed with --server")
    parser.add_argument(
        "--folder", type=Path, help="what conformance.players.credentials has made for the server's flags"
    )
    parser.add_argument("--area", action="append", default=[])
    parser.add_argument("--minimum", type=float, default=0.0, help="exit with 1 below this percentage")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument(
        "--write-readme", action="store_true", help="put the table and the misses into conformance/README.md"
    )
    arguments = parser.parse_args()
    if bool(arguments.server) != bool(arguments.token):
        parser.error("--server and --token belong together")
    credentials = Credentials(arguments.folder.absolute()) if arguments.folder else None
    named = Client(arguments.server, arguments.token, credentials) if arguments.server else None
    scores = replay(named, arguments.area) if named else replay_fresh(arguments.area)
    if arguments.output == "json":
        print(
            json.dumps(
                {area: {"equal": s.equal, "total": s.total, "misses": s.misses} for area, s in scores.items()}, indent=1
            )
        )
    else:
        for area, score in scores.items():
            for scenario, i, line, found in score.misses:
                print(f"{area}/{scenario}[{i}] {line[:120]}\n    {found[:600]}")
        print(table(scores))
    if arguments.write_readme:
        write_readme(scores)
    equal, total = sum(s.equal for s in scores.values()), sum(s.total for s in scores.values())
    return 0 if 100 * equal >= arguments.minimum * total else 1


def write_readme(scores: dict[str, Score]) -> None:
    """Replaces what stands between the two markers."""
    path = HERE / "README.md"
    before, _, rest = path.read_text().partition("<!-- score -->")
    _, _, after = rest.partition("<!-- end of score -->")
    listed = "\n".join(explained_misses(scores)) or "None."
    path.write_text(
        f"{before}<!-- score -->\n{table(scores)}\n\n### Every miss\n{listed}\n<!-- end of score -->{after}"
    )


def explained_misses(scores: dict[str, Score]) -> Iterator[str]:
    """A list item for each reason (explanations.json: the first that matches), and below it the misses that it explains."""
    reasons = [(re.compile(row["match"]), row["why"]) for row in json.loads((HERE / "explanations.json").read_text())]
    misses: dict[str, list[str]] = {}
    for area, score in scores.items():
        for scenario, i, line, found in score.misses:
            told = f"{area}/{scenario} request {i}, `{line[:90]}`: {found[:160]}"
            why = next((why for pattern, why in reasons if pattern.search(f"{told} {found}")), "Not explained yet.")
            misses.setdefault(why, []).append(told)
    for why, rows in misses.items():
        yield f"- {why}"
        yield from (f"  - {row}" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
