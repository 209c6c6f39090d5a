"""Random lives of deployments, replica sets, stateful sets, daemon sets and cron jobs, with two controller managers.

    python -m conformance.compare.controllers.workloads --oracle URL --oracle-token T --server URL --token T
        [--kinds Deployment,...] [--lives N] [--rounds N] [--seed N] [--seeds N] [--output text|json]

Beside each server a controller manager runs, without node lifecycle and pod garbage collection: this script plays the pods and nodes. Every
life is one workload in a namespace of its own. In each round one thing happens to it on both sides: it is scaled, rolled, paused, rolled
back, deleted (with each propagation policy) or created again, its pods get ready, fail, succeed, are deleted, taken out of it or put back,
its nodes come, go and are tainted, its schedule was missed. Then the script waits until nothing changes, and compares everything in the
namespace: whole objects, with identities, times, generated names and hashes made neutral, and events with their counts. Pods can't be
distinguished by their names, so the pods of each step are chosen by their state. A life ends at its first difference; each kind of
difference is printed once, with the seed of its run. With `--server` the oracle itself, what differs is chance.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from conformance.compare.controllers.jobs import wait
from conformance.compare.controllers.workload_acts import act, add_node, happening
from conformance.compare.controllers.workload_server import NODES, SHOWN, Object, Side
from conformance.exchange import Client
from conformance.players.controllers import difference

KINDS: Final = tuple(SHOWN)


@dataclass(frozen=True)
class Found:
    """The result of comparing a life: `problem` is "" if both sides are equal, `key` is the kind of the problem."""

    seed: int
    kind: str
    life: int
    problem: str = ""
    key: str = ""
    history: Sequence[Any] = ()


def run(sides: tuple[Side, Side], kinds: Sequence[str], count: int, rounds: int, seed: int) -> Iterator[Found]:
    chance = random.Random(seed)
    now = time.time()
    lives = {life: kinds[life % len(kinds)] for life in range(count)}
    histories: dict[int, list[Any]] = {life: [] for life in lives}
    for life, kind in lives.items():
        for side in sides:
            side.ask("POST", "/api/v1/namespaces", {"metadata": {"name": side.namespace(life)}})
            if kind == "DaemonSet":
                for number in range(3):
                    add_node(side, life, number)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(rounds):
            for life, kind in [*lives.items()]:
                found = sides[0].ask("GET", f"{sides[0].path(life, kind)}/w")
                workload = found["body"] if found["status"] == 200 else None
                acts = happening(chance, kind, workload, sides[0], life, now)
                pods = [side.pods(life) for side in sides]
                for done in acts:
                    histories[life].append([done.verb, *filter(None, (done.of, done.at, done.body))])
                    at = time.time()
                    answers = [act(side, life, kind, done, own, at) for side, own in zip(sides, pods, strict=True)]
                    if answers[0] != answers[1]:
                        problem = f"{done.verb} is answered {answers}"
                        yield Found(seed, kind, life, problem, problem, histories[life])
            wait(sides)
            for life, kind in [*lives.items()]:
                states = [*pool.map(lambda side, life=life, kind=kind: _plain(side.state_of(life, kind)), sides)]
                problem = difference(states[0], states[1], "")
                yield Found(seed, kind, life, problem, kind_of(problem), histories[life])
                if problem:
                    del lives[life]
    for side in sides:
        for life in range(count):
            side.ask("DELETE", f"/api/v1/namespaces/{side.namespace(life)}")
            for node in side.nodes(life):
                side.ask("DELETE", f"{NODES}/{node['metadata']['name']}")
            for pod in side.pods(life):
                side.ask("DELETE", f"{side.core(life, 'pods')}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})


def _plain(state: Object) -> Any:
    return json.loads(json.dumps(state))


def kind_of(problem: str) -> str:
    """A difference without its numbers."""
    return re.sub(r"\d+", "N", problem)[:200]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("oracle", "oracle-token", "server", "token"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--lives", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="how many, from --seed on")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    equal: Counter[str] = Counter()
    differences: dict[tuple[str, str], list[Found]] = {}
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        run_id = f"{seed}-{int(time.time()) % 100000}"
        sides = (
            Side(Client(arguments.oracle, arguments.oracle_token), f"wo-{run_id}"),
            Side(Client(arguments.server, arguments.token), f"ws-{run_id}"),
        )
        for found in run(sides, arguments.kinds.split(","), arguments.lives, arguments.rounds, seed):
            if not found.problem:
                equal[found.kind] += 1
                continue
            known = differences.setdefault((found.kind, found.key), [])
            known.append(found)
            if len(known) == 1 and arguments.output == "text":
                print(f"seed {seed}, {found.kind} {found.life}: {found.problem}", flush=True)
                print(f"    {json.dumps(found.history)}", flush=True)
        different = sum(map(len, differences.values()))
        print(f"seed {seed}: {sum(equal.values())} states equal, {different} lives differ", file=sys.stderr, flush=True)
    if arguments.output == "json":
        print(json.dumps(_report(equal, differences), indent=1))
    else:
        print("; ".join(f"{kind}: {equal[kind]} states equal" for kind in arguments.kinds.split(",")))
    return 1 if differences else 0


def _report(equal: Mapping[str, int], differences: Mapping[tuple[str, str], Sequence[Found]]) -> Object:
    return {
        "equal": equal,
        "different": [
            {
                "kind": kind,
                "seed": found[0].seed,
                "life": found[0].life,
                "count": len(found),
                "problem": found[0].problem,
                "history": found[0].history,
            }
            for (kind, _), found in differences.items()
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
