"""`python -m conformance.robustness attacks [--only TEXT] [--output text|json|table]`: attacks a server, and measures who else waits.

It starts this project's server, sends each attack of every.py while another client reads an object every 5 ms, and reports for each the
status, the processor time of the server, the seconds until the answer, and the longest wait of the other client. Exit status 1: the
server held another client for more than 100 ms, answered 5xx other than 504, or is gone.
"""

import argparse
import http.client
import json
import sys
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPException, HTTPSConnection
from socket import socket
from typing import Final

import msgspec
from msgspec import Struct

from conformance.robustness.attacks.attack import Attack, Call
from conformance.robustness.attacks.every import attacks
from conformance.robustness.attacks.frames import FLAGS
from conformance.robustness.attacks.prober import Prober, Waits, processor_clock
from conformance.robustness.client import LOST, Credentials
from conformance.robustness.served import served

# An answer has as many warnings as Python's client takes headers.
http.client._MAXHEADERS = 1000  # type: ignore[attr-defined]
# Seconds: the longest wait that is no finding, and how long an attacker waits for its answer.
_ALLOWED: Final = 0.1
_PATIENCE: Final = 100.0
_REFUSED: Final = 400
_SWITCHED: Final = 101
_TOO_LATE: Final = 504
_SERVER_ERROR: Final = 500
# How etcd refuses objects of more than 1.5 MB, which clients get as 500.
_TOO_LARGE: Final = ("etcdserver: request is too large", "rpc error: code = ResourceExhausted")
# Seconds before an attack in which the prober only sees the server at rest.
_REST: Final = 0.05
# Seconds for which frames are sent and answers read, and bytes by which the server may grow meanwhile.
_TALK: Final = 3.0
_SILENCE: Final = 0.5
_MEMORY: Final = 256 << 20
_PIECE: Final = 1 << 16


class Outcome(Struct, frozen=True):
    """`status` is 0 if there was no answer; `message` is the beginning of the answer's; times in seconds. `memory`: the bytes by which the
    server grew at most, of attacks with frames; `complaints`: the tracebacks that it printed."""

    name: str
    status: int
    message: str
    processor: float
    seconds: float
    waits: Waits
    memory: int
    complaints: int

    @property
    def problems(self) -> list[str]:
        problems = []
        if self.waits.held > _ALLOWED:
            problems.append(f"others waited {self.waits.held * 1000:.0f} ms")
        is_refusal = self.status == _TOO_LATE or self.message.startswith(_TOO_LARGE)
        if self.status == 0 or (self.status >= _SERVER_ERROR and not is_refusal):
            problems.append(f"status {self.status}")
        if self.waits.failed:
            problems.append(f"{self.waits.failed} requests of others failed")
        if self.memory > _MEMORY:
            problems.append(f"{self.memory >> 20} MiB more")
        if self.complaints:
            problems.append(f"{self.complaints} tracebacks")
        return problems


class _Attacker:
    """Sends the attacks, each on a connection of its own."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._prepared: set[int] = set()

    def prepare(self, call: Call) -> None:
        """Sends a request once. Raises RuntimeError if it is refused."""
        if id(call) in self._prepared:
            return
        status, message = self.send(call, call.body())
        if status >= _REFUSED:
            raise RuntimeError(f"{call.method} {call.path}, which prepares an attack: {status} {message}")
        self._prepared.add(id(call))

    def send(self, call: Call, body: bytes, frames: bytes = b"") -> tuple[int, str]:
        connection = HTTPSConnection(self._credentials.address, context=self._credentials.context, timeout=_PATIENCE)
        try:
            headers = {"Content-Type": call.content_type, **call.headers, **self._credentials.headers}
            connection.request(call.method, call.path, body or None, headers)
            response = connection.getresponse()
            if response.status == _SWITCHED:
                return response.status, _talk(connection.sock, frames)
            return response.status, _message(response.read())
        except LOST as error:
            return (0, str(error)) if not isinstance(error, HTTPException) else (0, repr(error))
        finally:
            connection.close()


def _talk(connection: socket, frames: bytes) -> str:
    """Sends frames until the server closes the connection, takes no more, or is silent, and returns what came of it."""
    end, received, at = time.monotonic() + _TALK, 0, 0
    connection.settimeout(_SILENCE)
    try:
        while time.monotonic() < end:
            if at < len(frames):
                at += connection.send(frames[at : at + _PIECE])
                continue
            data = connection.recv(_PIECE)
            received += len(data)
            if not data:
                return f"closed after {received} bytes"
    except TimeoutError:
        return f"silent after {received} bytes"
    except LOST as error:
        return f"closed: {error!r}"
    return f"goes on after {received} bytes"


def _message(body: bytes) -> str:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return body[:80].decode(errors="replace")
    message = answer.get("message", "") if isinstance(answer, dict) else ""
    return str(message)[:120]


def run(chosen: Sequence[Attack], flags: Sequence[str] = ()) -> Iterator[Outcome]:
    """Yields the outcome of each attack, all on one server. Raises RuntimeError if the server doesn't start."""
    with served((*FLAGS, *flags)) as server:
        attacker = _Attacker(server.credentials)
        used, prober = processor_clock(server.process), Prober(server.kubeconfig, server.process)
        try:
            for attack in chosen:
                for call in attack.before:
                    attacker.prepare(call)
                body, frames = attack.call.body(), attack.frames() if attack.frames else b""
                known, size = len(server.complaints()), server.memory()
                server.forget_peak()
                began, cost = time.monotonic(), used()
                prober.begin()
                time.sleep(_REST)
                status, message = attacker.send(attack.call, body, frames)
                seconds = time.monotonic() - began
                time.sleep(attack.after)
                waits = prober.end()
                if attack.frames and status != _SWITCHED:
                    raise RuntimeError(f"{attack.name}: {status} {message}, so no frames were sent")
                memory = server.peak() - size if attack.frames else 0
                complaints = len(server.complaints()) - known
                yield Outcome(attack.name, status, message, used() - cost, seconds - _REST, waits, memory, complaints)
        finally:
            prober.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("conformance.robustness attacks")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="attacks whose names have this text; may be repeated",
    )
    parser.add_argument("--output", choices=("text", "json", "table"), default="text", help="table: of Markdown")
    parser.add_argument("flags", nargs="*", metavar="FLAG", help="of `fakeapiserver serve`, after `--`")
    return parser


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    chosen = [attack for attack in attacks() if not options.only or any(text in attack.name for text in options.only)]
    if options.output == "table":
        print("| attack | status | processor time, ms | longest wait of another client, ms |\n|---|---|---|---|")
    failed = 0
    try:
        for outcome in run(chosen, options.flags):
            failed += bool(outcome.problems)
            print(_shown(outcome, options.output), flush=True)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    if options.output == "text":
        print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _shown(outcome: Outcome, output: str) -> str:
    if output == "json":
        return msgspec.json.encode(outcome).decode()
    processor, held = f"{outcome.processor * 1000:.0f}", f"{outcome.waits.held * 1000:.0f}"
    if output == "table":
        return f"| {outcome.name} | {outcome.status or 'none'} | {processor} | {held} |"
    problems = f"  <- {', '.join(outcome.problems)}" if outcome.problems else ""
    longest = f"{outcome.waits.longest * 1000:.0f}"
    return f"{outcome.name}: {outcome.status}, {processor} ms; others {held} ms (of {longest}){problems} {outcome.message[:90]!r}"
