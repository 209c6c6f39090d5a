"""`fakeapiserver sweep`: runs an operator through a scenario again and again, each time with another surprise, and reports its bugs."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.cli.arguments import InvalidArgument, UsageError, count, read_boolean, read_into, read_list, text
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.sweep import planning, reporting, scenario
from fakeapiserver.sweep import sweep as sweeps
from fakeapiserver.sweep.case import Target, Timing
from fakeapiserver.sweep.judging import Finding
from fakeapiserver.sweep.perturbation import KINDS, Kind, Perturbation
from fakeapiserver.sweep.process import Command
from fakeapiserver.sweep.sweep import CaseResult, Learnt, Report

_MOST_JOBS: Final = 64
_OUTPUTS: Final = ("text", "json", "junit")


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def _kinds(text: str) -> tuple[Kind, ...]:
    wanted = read_list(text)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown or not wanted:
        raise InvalidArgument(f"kinds are {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in wanted)


def _output(text: str) -> str:
    if text not in _OUTPUTS:
        raise InvalidArgument(f"must be one of {', '.join(_OUTPUTS)}")
    return text


FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "operator": text("operator"),
    "scenario": text("scenario"),
    "jobs": count("jobs", _MOST_JOBS),
    "budget": _duration,
    "patience": _duration,
    "quiet": _duration,
    "kinds": _kinds,
    "only": text("only"),
    "plan": read_boolean,
    "results": text("results"),
    "output": _output,
}


class Options(Struct):
    """The command line. Durations are in seconds."""

    operator: str = ""
    scenario: str = ""
    jobs: int = 2
    budget: float = float("inf")
    patience: float = 10.0
    quiet: float = 0.3
    kinds: tuple[Kind, ...] = KINDS
    only: str = ""
    plan: bool = False
    results: str = ""
    output: str = "text"

    def repeat(self, finding: Finding) -> str:
        """The command that runs the first case of a finding again."""
        words = ["fakeapiserver", "sweep", f"--operator={self.operator}", f"--scenario={self.scenario}"]
        words += [
            f"--{name}={getattr(self, name):g}s"
            for name in ("patience", "quiet")
            if getattr(self, name) != getattr(Timing(), name)
        ]
        return shlex.join([*words, f"--only={finding.causes[0]}"])


def main(arguments: Sequence[str]) -> int:
    """0 without findings, 3 with some; 1 if the operator can't be swept; 2 for a wrong command line."""
    options = Options()
    try:
        if others := read_into(options, arguments, FLAGS):
            raise UsageError(f"unexpected argument {others[0]!r}")
        if not options.operator:
            raise UsageError('--operator is missing: the command that runs it, as in --operator="./bin/manager"')
        if not options.scenario:
            raise UsageError("--scenario is missing: the YAML file with the steps")
        if options.jobs < 1:
            raise UsageError("--jobs must be 1 or more")
        target = Target(
            Command(options.operator),
            scenario.read(Path(options.scenario)),
            Timing(quiet=options.quiet, patience=options.patience),
        )
    except ValueError as error:
        return refuse(error, "sweep")
    except OSError as error:
        return complain(str(error), 1)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _sweep(options, target)
    except (OSError, ValueError) as error:
        print(f"fakeapiserver: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nfakeapiserver: interrupted; with --results the sweep goes on where it was", file=sys.stderr)
        sys.stderr.flush()
        os._exit(130)  # the reaper ends what is running


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _sweep(options: Options, target: Target) -> int:
    results = reporting.Results(Path(options.results), target) if options.results else None
    _tell("learning: the scenario runs twice without perturbations")
    learnt = sweeps.learn(target, options.kinds)
    if options.plan:
        print(reporting.plan_of(learnt, options.jobs))
        return 0
    planned = planning.only(learnt.plan, [options.only]) if options.only else learnt.plan
    report = _run(options, target, learnt, planned, results)
    if options.output == "json":
        print(json.dumps(reporting.document_of(report, options.repeat), indent=2, ensure_ascii=False))
    elif options.output == "junit":
        sys.stdout.buffer.write(reporting.junit_of(report, options.repeat) + b"\n")
    else:
        print(reporting.text_of(report, options.repeat))
    return 3 if report.findings else 0


def _run(
    options: Options,
    target: Target,
    learnt: Learnt,
    planned: Sequence[Perturbation],
    results: reporting.Results | None,
) -> Report:
    known = results.known if results is not None else []
    _tell(reporting.estimate(len(planned), learnt, options.jobs))

    def progress(done: int, total: int, result: CaseResult) -> None:
        if results is not None:
            results.add(result)
        verdict = f": {result.symptoms[0].text}" if result.symptoms else ""
        _tell(f"{done}/{total} {result.perturbation.id}{verdict}", is_passing=not verdict)

    report = sweeps.sweep(
        target, learnt, planned, jobs=options.jobs, budget=options.budget, progress=progress, known=known
    )
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return report


def _tell(line: str, *, is_passing: bool = False) -> None:
    """Shows progress. On a terminal a passing line is written over by the next."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line[:150]}", end="" if is_passing else "\n", file=sys.stderr, flush=True)
    elif not is_passing:
        print(line, file=sys.stderr, flush=True)
