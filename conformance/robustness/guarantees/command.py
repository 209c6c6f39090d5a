"""`python -m conformance.robustness NAME [--full] [--output text|json]`: runs one of the guarantees, or `guarantees` for all of them."""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from conformance.robustness.client import LOST
from conformance.robustness.guarantees.every import GUARANTEES
from conformance.robustness.guarantees.guarantee import Report, Skipped

ALL: Final = "guarantees"


def main(name: str, arguments: Sequence[str]) -> int:
    """Exit status 1: a promise was broken, a server didn't start, or it went away."""
    parser = argparse.ArgumentParser(f"conformance.robustness {name}")
    parser.add_argument(
        "--full", action="store_true", help="the size that docs/guarantees.md has figures of; up to an hour"
    )
    parser.add_argument("--output", choices=("text", "json"), default="text")
    options = parser.parse_args(arguments)
    failed = 0
    for each in GUARANTEES if name == ALL else (name,):
        began = time.monotonic()
        try:
            report = GUARANTEES[each].run(options.full)
        except Skipped as missing:
            print(f"{each}: skipped: {missing}", flush=True)
            continue
        except (RuntimeError, *LOST) as error:
            print(f"{each}: {error}", file=sys.stderr)
            return 1
        failed += bool(report.problems)
        report = Report({**report.figures, "seconds": f"{time.monotonic() - began:,.0f}"}, report.problems)
        print(_shown(each, report, options.output), flush=True)
    return 1 if failed else 0


def _shown(name: str, report: Report, output: str) -> str:
    if output == "json":
        return msgspec.json.encode({"name": name, **msgspec.to_builtins(report)}).decode()
    figures = "".join(f"  {figure}: {value}\n" for figure, value in report.figures.items())
    problems = "".join(f"  BROKEN: {problem}\n" for problem in report.problems)
    return f"{name}: {GUARANTEES[name].promise}\n{figures}{problems}".rstrip()
