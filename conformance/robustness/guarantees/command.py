"""`python -m conformance.robustness NAME [--full] [--output text|json]`: runs one of the guarantees, or `guarantees` for all of them."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from conformance.robustness.guarantees.guarantee import Guarantee, Report
from conformance.robustness.guarantees.lifecycle import one_after_the_other, side_by_side
from conformance.robustness.guarantees.slow_senders import slow_senders
from conformance.robustness.guarantees.soak import soak
from conformance.robustness.guarantees.watchers import fan_out, slow_readers

ALL: Final = "guarantees"
GUARANTEES: Final[Mapping[str, Guarantee]] = {
    "fan-out": Guarantee("Each watcher gets each event once, in order.", fan_out),
    "slow-readers": Guarantee(
        "Watchers that stop reading are ended, or go on without a gap; the others lose nothing, and memory is bounded.",
        slow_readers,
    ),
    "slow-senders": Guarantee(
        "Connections that send no request within 32 seconds are closed, and delay no other client.", slow_senders
    ),
    "lifecycle": Guarantee(
        "Clusters that were stopped leave no descriptor, thread or event loop.", one_after_the_other
    ),
    "side-by-side": Guarantee("Clusters in one process know nothing of each other.", side_by_side),
    "soak": Guarantee("Memory, descriptors and threads of a server don't grow with time.", soak),
}


def main(name: str, arguments: Sequence[str]) -> int:
    """Exit status 1: a promise was broken, or a server didn't start."""
    parser = argparse.ArgumentParser(f"conformance.robustness {name}")
    parser.add_argument(
        "--full", action="store_true", help="the size that docs/robustness.md has figures of; up to an hour"
    )
    parser.add_argument("--output", choices=("text", "json"), default="text")
    options = parser.parse_args(arguments)
    failed = 0
    for each in GUARANTEES if name == ALL else (name,):
        try:
            report = GUARANTEES[each].run(options.full)
        except RuntimeError as error:
            print(f"{each}: {error}", file=sys.stderr)
            return 1
        failed += bool(report.problems)
        print(_shown(each, report, options.output), flush=True)
    return 1 if failed else 0


def _shown(name: str, report: Report, output: str) -> str:
    if output == "json":
        return msgspec.json.encode({"name": name, **msgspec.to_builtins(report)}).decode()
    figures = "".join(f"  {figure}: {value}\n" for figure, value in report.figures.items())
    problems = "".join(f"  BROKEN: {problem}\n" for problem in report.problems)
    return f"{name}: {GUARANTEES[name].promise}\n{figures}{problems}".rstrip()
