"""The recorded answers of real servers, replayed: each area keeps the share of equal answers that it has reached."""

import json
from typing import Final

from conformance.exchange import HERE
from conformance.replay import Score, replay_fresh
from conformance.robustness.guarantees.guarantee import Report, Skipped

# Areas that take a second or two each.
_QUICK: Final = ("abac", "patches", "printing")


def answers(full: bool) -> Report:
    """Every area in full, three for CI, each on a server of its own; needs the recordings, which a checkout has. Raises Skipped without
    them."""
    if not (HERE / "exchanges").is_dir():
        raise Skipped("the recorded answers are not here: a checkout of the repository is needed")
    scores = replay_fresh(() if full else _QUICK)
    floors = json.loads((HERE / "floors.json").read_text())
    problems = [
        f"{area}: {score.percent:.1f} % of {score.total} answers are equal, and were {floors[area]} %"
        for area, score in scores.items()
        if score.percent < floors[area]
    ]
    return Report({area: _share(score) for area, score in scores.items()} | {"all": _share(_sum(scores))}, problems)


def _sum(scores: dict[str, Score]) -> Score:
    return Score(sum(score.equal for score in scores.values()), sum(score.total for score in scores.values()))


def _share(score: Score) -> str:
    return f"{score.equal:,} of {score.total:,} are equal, {score.percent:.1f} %"
