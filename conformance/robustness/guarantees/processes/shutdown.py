"""Servers that end under load: each write that happens is answered, and the port is free for the next server."""

import itertools
import os
import signal
import tempfile
import threading
import time
from http.client import HTTPException
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from conformance.robustness.client import LOST, Client, Credentials
from conformance.robustness.guarantees.guarantee import Report
from conformance.robustness.served import CONFIG_MAPS, config_map, done
from conformance.robustness.servers import OurServer

_WRITERS: Final = 16
_WATCHERS: Final = 4
# Seconds of load before the signal, within which the server has to end, and between two of its starts at most.
_LOAD: Final = 0.5
_END: Final = 20.0
_PATIENCE: Final = 30.0


class _Seen(Struct):
    """The experience of a server's clients. answered, unanswered: names of objects whose creation was answered with 201, or whose
    connection was closed without an answer. wrong: other answers, and cut ones. cut: watches that ended in the middle of an event."""

    answered: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    cut: int = 0


def shutdown(full: bool) -> Report:
    """40 servers in full, one for CI, each with 16 writers and 4 watchers; the data directory shows which writes have happened."""
    count, problems, answered, unanswered, longest = 40 if full else 1, list[str](), 0, 0, 0.0
    with tempfile.TemporaryDirectory(prefix="robustness-") as folder:
        server = OurServer(Path(folder) / "kubeconfig", [f"--data-dir={folder}/data", "--sync=off"])
        try:
            for number in range(count):
                seen, seconds, wrong = _one(server, number)
                stored = _stored(server.start())
                server.kill()
                wrong += [f"{name} was answered and is lost" for name in seen.answered if name not in stored]
                wrong += [f"{name} was written without an answer" for name in seen.unanswered if name in stored]
                problems += [f"server {number}: {text}" for text in wrong]
                answered += len(seen.answered)
                unanswered += len(seen.unanswered)
                longest = max(longest, seconds)
        finally:
            server.close()
    figures = {
        "servers, one after the other at one port": str(count),
        "writes that were answered": f"{answered:,}",
        "requests that met a closed connection, and did not happen": f"{unanswered:,}",
        "from the signal to the end": f"{longest:.1f} s at most",
    }
    return Report(figures, problems)


def _one(server: OurServer, number: int) -> tuple[_Seen, float, list[str]]:
    """Returns what clients saw, the seconds from the signal to the server's end, and what was wrong with that."""
    credentials = server.start()
    seen = _Seen()
    threads = [
        threading.Thread(target=_write, args=(credentials, f"w{number}-{writer}", seen), daemon=True)
        for writer in range(_WRITERS)
    ] + [threading.Thread(target=_watch, args=(credentials, seen), daemon=True) for _ in range(_WATCHERS)]
    for thread in threads:
        thread.start()
    time.sleep(_LOAD)
    assert server.group is not None
    began = time.monotonic()
    os.kill(server.group, signal.SIGTERM)
    ended = server.wait(_END)
    seconds = time.monotonic() - began
    for thread in threads:
        thread.join(_PATIENCE)
    wrong = seen.wrong if ended else [f"it runs {_END:.0f} s after the signal"]
    if ended and server.ended != 0:
        wrong.append(f"its status is {server.ended}")
    if seen.cut:
        wrong.append(f"{seen.cut} watches ended in the middle of an event")
    if "Traceback" in (output := server.output()):
        wrong.append(f"a traceback: {output[-1500:]}")
    return seen, seconds, wrong


def _write(credentials: Credentials, prefix: str, seen: _Seen) -> None:
    """Creates objects on one connection until the server closes it."""
    client = Client(credentials)
    for number in itertools.count():
        name = f"{prefix}-{number}"
        try:
            status, answer = client.ask("POST", CONFIG_MAPS, config_map(name))
        except ConnectionRefusedError:
            return
        except LOST:
            seen.unanswered.append(name)
            return
        if status == 201:
            seen.answered.append(name)
        else:
            seen.wrong.append(f"{name}: {status} {answer.get('message')}")


def _watch(credentials: Credentials, seen: _Seen) -> None:
    try:
        for _ in Client(credentials).watch(CONFIG_MAPS, {}):
            pass
    except HTTPException:
        seen.cut += 1
    except OSError:
        pass  # the server has closed the connection between two events


def _stored(credentials: Credentials) -> set[str]:
    client = Client(credentials)
    listed = done(client.ask("GET", CONFIG_MAPS), 200)
    client.close()
    return {item["metadata"]["name"] for item in listed["items"]}
