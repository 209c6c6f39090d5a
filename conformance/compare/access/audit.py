"""Compares what two servers write into their audit logs for the same requests: prints each kind of difference once.

    python -m conformance.compare.access.audit --oracle URL --oracle-token T --oracle-log FILE --server URL --token T --log FILE
        [--area A …] [--count N] [--seed N]

Both servers need the same `--audit-policy-file` and `--audit-log-path` in blocking mode, and should be fresh. The requests are those
of all scenarios (or of some areas), whatever they were made for, then `count` random writes and reads.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance import recordings
from conformance.compare.requests import Report
from conformance.exchange import Answer, Client, comparing, difference, run, run_requests, scenarios
from conformance.players.credentials import needs_credentials
from conformance.random import reads as random_reads
from conformance.random import writes


def compared(path: Path, oracle: Client, server: Client, report: Report) -> None:
    """A scenario's events on both."""
    requests = recordings.scenario(path.read_text())["requests"]
    label = f"{path.parent.name}/{path.stem}"
    _judge(label, requests, run(path, oracle, patient=True), run(path, server), report)


def random_requests(seed: int, count: int) -> Iterator[list[Mapping[str, Any]]]:
    """Yields the requests of two runs: random writes, then random reads. They are separate since some requests refer to earlier answers."""
    generator, reads = writes.Generator(seed), random_reads.Generator(seed)
    yield [*writes.prepare(), *(generator.request() for _ in range(count))]
    yield [*random_reads.setup(), *(reads.request(number + 4) for number in range(count))]


def _judge(
    label: str, requests: Sequence[Mapping[str, Any]], expected: Sequence[Answer], got: Sequence[Answer], report: Report
) -> None:
    for number, (request, want, have) in enumerate(zip(requests, expected, got, strict=True)):
        # Where the answers differ already, events can't be equal.
        alike = not difference(_answer(want), _answer(have))
        report.add(f"{label}[{number}]", dict(request), difference(_events(want), _events(have)) if alike else "")


def _answer(answer: Answer) -> Answer:
    return {key: value for key, value in answer.items() if key != "audit"}


def _events(answer: Answer) -> Answer:
    return {"audit": answer["audit"]}


def main() -> int:
    parser = comparing(__doc__, count=200)
    parser.add_argument("--oracle-log", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--area", action="append", default=[])
    arguments = parser.parse_args()
    oracle = Client(arguments.oracle, arguments.oracle_token, log=arguments.oracle_log)
    server = Client(arguments.server, arguments.token, log=arguments.log)
    report = Report()
    for area, path in scenarios(arguments.area):
        if not needs_credentials(area):
            compared(path, oracle, server, report)
    for number, requests in enumerate(random_requests(arguments.seed, arguments.count)):
        expected, got = (run_requests(requests, client) for client in (oracle, server))
        _judge(f"random {number}", requests, expected, got, report)
    print(report.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
