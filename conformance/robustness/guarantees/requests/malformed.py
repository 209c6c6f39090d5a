"""Malformed HTTP on raw sockets, whole and in pieces: one answer or a closed connection, and the next client is served."""

import random
import re
import socket
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Final

from conformance.compare.http import Generator
from conformance.robustness.client import LOST, Client, Credentials
from conformance.robustness.guarantees.guarantee import Report
from conformance.robustness.served import served

_CLIENTS: Final = 12
# Seconds without an answer after which the server is taken to wait for more of the request, in the first and in the last attempt;
# and between two parts of an answer.
_PATIENCE: Final = (2.0, 30.0)
_IDLE: Final = 2.0
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
_ALLOWED: Final = {501, 504, 505}
# kube-apiserver's own 500, to paths such as /api/v1/proxy.
_UPSTREAM: Final = b"failed to create RequestInfo"
_DAMAGE: Final = 0.6  # share of requests
_BYTES: Final = (b"\0", b"\r", b"\n", b"\r\n", b" ", b":", b"\xff", b"\x7f", b"%", b"\t", b"/", b"0", b"\xc3\x28")
_SHOWN: Final = 20


def malformed(full: bool) -> Report:
    """20,000 requests in full, 100 for CI, each sent whole and in pieces."""
    count = 20_000 if full else 100
    with served() as server:
        statuses: Counter[str] = Counter()
        problems: list[str] = []
        shares = [range(number, count, _CLIENTS) for number in range(_CLIENTS)]
        threads = [
            threading.Thread(target=_send_all, args=(server.credentials, share, statuses, problems)) for share in shares
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        problems = problems[:_SHOWN] + server.complaints()
    answers = ", ".join(f"{status} {number:,}" for status, number in sorted(statuses.items()))
    return Report({"requests": f"{count:,}", "answers, - for none": answers}, problems)


def _send_all(credentials: Credentials, seeds: Sequence[int], statuses: Counter[str], problems: list[str]) -> None:
    canary = Client(credentials)
    for seed in seeds:
        request, is_whole = _request(seed, credentials)
        whole = b""
        for patience in _PATIENCE:
            whole, pieces = (
                _exchange(credentials, [request], patience),
                _exchange(credentials, _pieces(seed, request), patience),
            )
            if _status(whole) == _status(pieces):
                break
        else:
            problems.append(f"seed {seed}: {_status(whole)} whole, {_status(pieces)} in pieces: {request[:600]!r}")
        statuses[_status(whole)] += 1
        problems += [
            f"seed {seed}: {text}: {request[:600]!r} {whole[:300]!r}" for text in _wrong(whole, is_whole=is_whole)
        ]
        try:
            if canary.ask("GET", "/version")[0] != 200:
                problems.append(f"seed {seed}: the next client isn't served: {request[:600]!r}")
        except LOST as error:
            problems.append(f"seed {seed}: the next client isn't served ({error!r}): {request[:600]!r}")
    canary.close()


def _request(seed: int, credentials: Credentials) -> tuple[bytes, bool]:
    """Returns a request, and whether its bytes are those that the generator has made."""
    lines, body = Generator(seed).request()
    authorization = [f"{name}: {value}" for name, value in credentials.headers.items()]
    head = "\r\n".join([lines[0], *authorization, *lines[1:]])
    request, chance = head.encode() + b"\r\n\r\n" + body.encode("latin-1"), random.Random(seed)
    if chance.random() >= _DAMAGE:
        return request, True
    for _ in range(chance.choice((1, 1, 2, 5))):
        request = _damaged(request, chance)
    return request, False


def _damaged(request: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(request) + 1)
    length = chance.choice((1, 1, 2, 20))
    match chance.randrange(5):
        case 0:
            return request[:place] + chance.choice(_BYTES) + request[place:]
        case 1:
            return request[:place] + request[place + length :]
        case 2:
            return request[:place] + bytes([chance.randrange(256)]) + request[place + 1 :]
        case 3:
            return request[:place] + request[max(place - length, 0) : place] * chance.choice((2, 300)) + request[place:]
        case _:
            lines = request.split(b"\r\n")
            lines.insert(chance.randrange(len(lines)), chance.choice(lines))
            return b"\r\n".join(lines)


def _pieces(seed: int, request: bytes) -> list[bytes]:
    chance, pieces = random.Random(seed), list[bytes]()
    while request:
        length = chance.choice((1, 1, 2, 7, 50))
        pieces.append(request[:length])
        request = request[length:]
    return pieces


def _exchange(credentials: Credentials, pieces: Sequence[bytes], patience: float) -> bytes:
    """Returns what comes back until the server closes the connection or waits."""
    host, port = credentials.address.split(":")
    answer = b""
    try:
        with (
            socket.create_connection((host, int(port)), timeout=patience) as plain,
            credentials.context.wrap_socket(plain, server_hostname=host) as connection,
        ):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                for piece in pieces:
                    connection.sendall(piece)
            except OSError:
                pass  # the server has refused the beginning
            while piece := connection.recv(65536):
                answer += piece
                connection.settimeout(_IDLE)
    except OSError:
        pass
    return answer


def _status(answer: bytes) -> str:
    match = _STATUS.match(answer)
    return match[1].decode() if match else "-"


def _wrong(answer: bytes, *, is_whole: bool) -> list[str]:
    status, wrong = _status(answer), list[str]()
    if answer and status == "-":
        wrong.append("the answer is not HTTP")
    if status[0] == "5" and int(status) not in _ALLOWED and _UPSTREAM not in answer:
        wrong.append(f"the answer is {status}")
    if is_whole and len(_STATUS.findall(answer)) > 1 and status != "100":
        wrong.append("two answers to one request")
    return wrong
