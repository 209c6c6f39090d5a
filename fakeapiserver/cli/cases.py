"""The common parts of `sweep` and `explore`, which run many cases of an operator."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct

from fakeapiserver.apimachinery.duration import parse_duration
from fakeapiserver.cli.arguments import InvalidArgument, UsageError, count, read_boolean, text
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cluster.processes.process import own_temporary_folder
from fakeapiserver.sweep.page import page
from fakeapiserver.sweep.report.document import Document, json_of
from fakeapiserver.sweep.report.junit import junit_of
from fakeapiserver.sweep.scenario import Scenario
from fakeapiserver.sweep.timing import Timing

_MOST_JOBS: Final = 64
# Cases wait most of the time: there may be more of them than processors.
_MOST_DEFAULT_JOBS: Final = 8
_OUTPUTS: Final = ("text", "json", "junit")
_Prepared = TypeVar("_Prepared")


def duration(text: str) -> float:
    """Seconds. Raises InvalidArgument."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def _output(text: str) -> str:
    if text not in _OUTPUTS:
        raise InvalidArgument(f"must be one of {', '.join(_OUTPUTS)}")
    return text


FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "operator": text("operator"),
    "scenario": text("scenario"),
    "jobs": count("jobs", _MOST_JOBS),
    "budget": duration,
    "patience": duration,
    "quiet": duration,
    "only": text("only"),
    "plan": read_boolean,
    "results": text("results"),
    "output": _output,
    "page": text("page"),
}


class CaseOptions(Struct):
    """The flags of both commands. Durations are in seconds."""

    operator: str = ""
    scenario: str = ""
    jobs: int = min(2 * (os.cpu_count() or 1), _MOST_DEFAULT_JOBS)
    budget: float = float("inf")
    patience: float = 10.0
    quiet: float = 0.3
    only: str = ""
    plan: bool = False
    results: str = ""
    output: str = "text"
    page: str = ""

    def check(self) -> None:
        """Raises UsageError."""
        if not self.operator:
            raise UsageError('--operator is missing: the command that runs it, as in --operator="./bin/manager"')
        if not self.scenario:
            raise UsageError("--scenario is missing: the YAML file with the steps")
        if self.jobs < 1:
            raise UsageError("--jobs must be 1 or more")
        if self.page and not Path(self.page).absolute().parent.is_dir():
            raise UsageError(f"--page: there is no folder {str(Path(self.page).parent)!r}")

    def check_jobs(self, scenario: Scenario) -> None:
        """Raises UsageError if the scenario's operators can't run at the same time."""
        if self.jobs > 1 and scenario.surroundings.runs_alone:
            raise UsageError(
                f"webhookPort: only one operator at a time can listen on port {scenario.surroundings.fixed_port}: "
                "use --jobs=1, or add `isolate: true` to the scenario"
            )

    def write(self, document: Document, text: str, details: Sequence[str]) -> None:
        """Prints the report as `--output` says, and writes the page. `details`: the text about each finding. Raises OSError."""
        if self.output == "json":
            print(json_of(document))
        elif self.output == "junit":
            sys.stdout.buffer.write(junit_of(document, details) + b"\n")
        else:
            print(text)
        if self.page:
            Path(self.page).write_text(page.html_of(document), encoding="utf-8")

    def words(self, command: str) -> list[str]:
        """The beginning of a command that runs a case again."""
        words = ["fakeapiserver", command, f"--operator={self.operator}", f"--scenario={self.scenario}"]
        return words + [
            f"--{name}={getattr(self, name):g}s"
            for name in ("patience", "quiet")
            if getattr(self, name) != getattr(Timing(), name)
        ]


def run(command: str, prepare: Callable[[], _Prepared], work: Callable[[_Prepared], int]) -> int:
    """Returns the exit status: 0 without findings, 3 with some; 1 if the operator can't be run; 2 for a wrong command line."""
    try:
        prepared = prepare()
    except ValueError as error:
        return refuse(error, command)
    except OSError as error:
        return complain(str(error), 1)
    signal.signal(signal.SIGTERM, _interrupt)
    logging.getLogger("fakeapiserver").addHandler(logging.NullHandler())  # the bundled controllers try again
    try:
        with own_temporary_folder():
            return work(prepared)
    except (OSError, ValueError) as error:
        print(f"fakeapiserver: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nfakeapiserver: interrupted; with --results `{command}` goes on where it was", file=sys.stderr)
        sys.stderr.flush()
        os._exit(130)  # the reaper ends what is running


def tell(line: str, *, is_passing: bool = False) -> None:
    """Shows progress. On a terminal a passing line is written over by the next."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line[:150]}", end="" if is_passing else "\n", file=sys.stderr, flush=True)
    elif not is_passing:
        print(line, file=sys.stderr, flush=True)


def clear_line() -> None:
    """Removes the passing line."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
