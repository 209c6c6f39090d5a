"""`fakeapiserver sweep`: runs an operator through a scenario again and again, each time with another surprise, and reports its bugs."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from fakeapiserver.cli import cases
from fakeapiserver.cli.arguments import InvalidArgument, UsageError, read_into, read_list
from fakeapiserver.sweep import reporting, scenario
from fakeapiserver.sweep import sweep as sweeps
from fakeapiserver.sweep.case import Target, prepared
from fakeapiserver.sweep.judging import Finding
from fakeapiserver.sweep.perturbation import KINDS, Kind, Perturbation
from fakeapiserver.sweep.process import Command
from fakeapiserver.sweep.report.document import Swept
from fakeapiserver.sweep.sweep import CaseResult, Learnt, Report
from fakeapiserver.sweep.timing import Timing


def _kinds(text: str) -> tuple[Kind, ...]:
    wanted = read_list(text)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown or not wanted:
        raise InvalidArgument(f"kinds are {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in wanted)


FLAGS: Final[Mapping[str, Callable[[str], object]]] = {**cases.FLAGS, "kinds": _kinds, "calm": cases.duration}
_CALM: Final = 5.0


class Options(cases.CaseOptions):
    """The command line."""

    kinds: tuple[Kind, ...] = KINDS
    calm: float = _CALM

    def repeat(self, finding: Finding) -> str:
        """The command that runs the first case of a finding again."""
        calm = [] if self.calm == _CALM else [f"--calm={self.calm:g}s"]
        return shlex.join([*self.words("sweep"), *calm, f"--only={finding.causes[0]}"])


def main(arguments: Sequence[str]) -> int:
    """0 without findings, 3 with some; 1 if the operator can't be swept; 2 for a wrong command line."""
    options = Options()

    def prepare() -> Target:
        if others := read_into(options, arguments, FLAGS):
            raise UsageError(f"unexpected argument {others[0]!r}")
        options.check()
        timing = Timing(quiet=options.quiet, patience=options.patience, calm=options.calm)
        read = scenario.read(Path(options.scenario))
        options.check_jobs(read)
        return Target(Command(options.operator), read, timing)

    return cases.run("sweep", prepare, lambda target: _sweep(options, target))


def _sweep(options: Options, target: Target) -> int:
    results = reporting.Results(Path(options.results), target, CaseResult) if options.results else None
    cases.tell("learning: the scenario runs twice without perturbations")
    with prepared(target) as base:
        learnt = sweeps.learn(target, options.kinds, base)
        if learnt.unanswered:
            cases.tell(
                f"the operator calls {learnt.unanswered}, where nothing answers: its statuses aren't compared (see `sidecar`)"
            )
        if options.plan:
            print(reporting.plan_of(learnt, options.jobs))
            return 0
        planned = sweeps.named(learnt, options.only) if options.only else learnt.plan
        report = _run(options, target, learnt, planned, results)
    swept = Swept(options.operator, options.scenario, options.repeat)
    lines = reporting.text_of(report, options.repeat)
    options.write(reporting.document_of(report, swept), lines, reporting.details_of(report.findings, options.repeat))
    return 3 if report.findings else 0


def _run(
    options: Options,
    target: Target,
    learnt: Learnt,
    planned: Sequence[Perturbation],
    results: reporting.Results[CaseResult] | None,
) -> Report:
    known = results.known if results is not None else []
    cases.tell(reporting.estimate(len(planned), learnt.seconds, options.jobs))

    def progress(done: int, total: int, result: CaseResult) -> None:
        if results is not None:
            results.add(result)
        verdict = f": {result.symptoms[0].text}" if result.symptoms else ""
        cases.tell(f"{done}/{total} {result.perturbation.id}{verdict}", is_passing=not verdict)

    report = sweeps.sweep(
        target, learnt, planned, jobs=options.jobs, budget=options.budget, progress=progress, known=known
    )
    cases.clear_line()
    return report
