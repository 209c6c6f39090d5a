"""`fakeapiserver explore`: tries the specs that a CustomResourceDefinition allows, and reports the operator's bugs."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from fakeapiserver.cli import cases
from fakeapiserver.cli.arguments import UsageError, count, read_into, text
from fakeapiserver.sweep import scenario
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.exploring import explore, reporting
from fakeapiserver.sweep.exploring.cases import Case
from fakeapiserver.sweep.exploring.explore import Exploration, Learnt
from fakeapiserver.sweep.exploring.findings import SpecResult
from fakeapiserver.sweep.judging import Finding
from fakeapiserver.sweep.process import Command
from fakeapiserver.sweep.report.document import Swept
from fakeapiserver.sweep.reporting import Results, details_of, estimate
from fakeapiserver.sweep.timing import Timing

_MOST_CASES: Final = 100_000
# Characters of an error that a status reports.
_SHOWN: Final = 200
FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    **cases.FLAGS,
    "object": text("object"),
    "cases": count("cases", _MOST_CASES),
    "depth": count("depth", 2),
}


class Options(cases.CaseOptions):
    """The command line."""

    object: str = ""
    cases: int = 100
    depth: int = 2

    def repeat(self, finding: Finding) -> str:
        """The command that runs the first case of a finding again."""
        chosen = [f"--object={self.object}"] if self.object else []
        return shlex.join([*self.words("explore"), *chosen, f"--only={finding.causes[0]}"])


def main(arguments: Sequence[str]) -> int:
    """0 without findings, 3 with some; 1 if the operator can't be run; 2 for a wrong command line."""
    options = Options()

    def prepare() -> Target:
        if others := read_into(options, arguments, FLAGS):
            raise UsageError(f"unexpected argument {others[0]!r}")
        options.check()
        if options.cases < 1 or options.depth < 1:
            raise UsageError("--cases and --depth must be 1 or more")
        timing = Timing(quiet=options.quiet, patience=options.patience)
        read = scenario.read(Path(options.scenario))
        options.check_jobs(read)
        return Target(Command(options.operator), read, timing)

    return cases.run("explore", prepare, lambda target: _explore(options, target))


def _explore(options: Options, target: Target) -> int:
    results = Results(Path(options.results), target, SpecResult) if options.results else None
    cases.tell("learning: the custom resource is created twice as it is")
    with explore.learn(target, options.object) as learnt:
        if learnt.reported:
            cases.tell(
                f"the status reports an error with the scenario's own spec: {', '.join(each[:_SHOWN] for each in learnt.reported)}"
            )
        planned = explore.named(learnt, options.only) if options.only else _planned(options, learnt)
        if options.plan:
            print(reporting.plan_of(learnt, planned, options.jobs))
            return 0
        report = _run(options, learnt, planned, results)
    swept = Swept(options.operator, options.scenario, options.repeat)
    lines = reporting.text_of(report, options.repeat)
    options.write(reporting.document_of(report, swept), lines, details_of(report.findings, options.repeat))
    return 3 if report.findings else 0


def _planned(options: Options, learnt: Learnt) -> Sequence[Case]:
    return explore.plan(learnt, options.cases, options.depth)


def _run(options: Options, learnt: Learnt, planned: Sequence[Case], results: Results[SpecResult] | None) -> Exploration:
    known = results.known if results is not None else []
    cases.tell(estimate(len(planned), learnt.seconds, options.jobs))

    def progress(done: int, total: int, result: SpecResult) -> None:
        if results is not None:
            results.add(result)
        verdict = f": {result.symptoms[0].text}" if result.symptoms else ""
        cases.tell(f"{done}/{total} {result.id}{verdict}", is_passing=not verdict)

    report = explore.explore(learnt, planned, jobs=options.jobs, budget=options.budget, progress=progress, known=known)
    cases.clear_line()
    return report
