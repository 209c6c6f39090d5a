"""A client that writes and reads objects as controllers do: it changes what it has read, and reads again when it was too late."""

import time
from collections.abc import Sequence
from typing import Any, Final

from conformance.robustness.client import MERGE_PATCH, Client
from conformance.robustness.history import Content, Stored, Verb, Write, merged
from conformance.robustness.kinds import COLORS, EVENTS, Kind
from conformance.robustness.reader import Reader
from conformance.robustness.reading import Reading, revision_of

# Shares of requests; verbs of existing objects, by weight.
_READS: Final = 0.25
_EVENTS: Final = 0.03
_VERBS: Final[tuple[Verb, ...]] = ("update", "patch", "status", "delete")
_WEIGHTS: Final = (50, 20, 20, 10)
_CREATIONS: Final = 0.3  # of writes, if an object is missing


class Writer(Reader):
    """A reader that also writes. What it has written is in `writes`."""

    def __init__(
        self, client: Client, server: int, name: str, reading: Reading, kinds: Sequence[Kind], *, with_events: bool
    ) -> None:
        super().__init__(client, server, name, reading, kinds)
        self.writes: list[Write] = []
        self._with_events = with_events

    def _act(self) -> None:
        if self._must_read or self._chance.random() < _READS:
            self._read()
        else:
            self._write()

    def _write(self) -> None:
        """Sends one write, of an object as this client knows it. Raises what LOST lists if the answer doesn't come."""
        chance, unique = self._chance, f"{self._name}-{len(self.writes)}"
        if self._with_events and chance.random() < _EVENTS:
            content = Content(unique, "", chance.choice(COLORS), None)
            return self._send(EVENTS, Write(self._name, self._server, "create", f"events/{unique}", content, 0, 0.0))
        kind = chance.choice(self._kinds)
        known = {name: stored for name, stored in self._known.items() if name.startswith(f"{kind.resource}/")}
        absent = [name for name in kind.names if f"{kind.resource}/{name}" not in known]
        if not known or (absent and chance.random() < _CREATIONS):
            name = f"{kind.resource}/{chance.choice(absent or kind.names)}"
            content = Content(unique, "", chance.choice(COLORS), None)
            return self._send(kind, Write(self._name, self._server, "create", name, content, 0, 0.0))
        name = chance.choice([*known])
        return self._change(kind, name, known[name], unique)

    def _change(self, kind: Kind, name: str, stored: Stored, unique: str) -> None:
        [verb] = self._chance.choices(_VERBS, _WEIGHTS)
        if verb == "status" and not kind.has_status:
            verb = "update"
        expected: int | None = stored.revision
        match verb:
            case "update":
                mark = None if kind.has_status else stored.content.mark
                content = Content(unique, mark, self._chance.choice(COLORS), None)
            case "patch":
                content, expected = Content(None, unique, None, None), None
            case "status":
                content = Content(None, unique, None, None)
            case _:
                content = stored.content
                expected = self._chance.choice((expected, None))
        write = Write(self._name, self._server, verb, name, content, expected, 0.0)
        self._send(kind, write, stored.content)

    def _send(self, kind: Kind, write: Write, before: Content | None = None) -> None:
        self.writes.append(write)
        self._known.pop(write.name, None)
        write.began = time.monotonic()
        write.status, answer = self._ask(kind, write, before)
        write.ended = time.monotonic()
        if write.status in (200, 201):
            write.outcome = "done"
        elif write.status < 500:
            write.outcome = "refused"
        if write.outcome == "done" and write.verb != "delete":
            write.revision, write.answer = revision_of(answer), kind.content(answer)
            self._known[write.name] = Stored(write.revision, write.answer)
            self._reading.saw(write.revision)

    def _ask(self, kind: Kind, write: Write, before: Content | None) -> tuple[int, Any]:
        client, content, name = self._client, write.content, write.name.partition("/")[2]
        path = f"{kind.path}/{name}"
        match write.verb:
            case "create":
                return client.ask("POST", kind.path, kind.object(name, content))
            case "update":
                return client.ask("PUT", path, kind.object(name, self._whole(write, before), write.expected or 0))
            case "patch":
                path += "/status" if kind.has_status else ""
                return client.ask("PATCH", path, kind.patch(content.mark or ""), MERGE_PATCH)
            case "status":
                body = kind.object(name, self._whole(write, before), write.expected or 0)
                return client.ask("PUT", f"{path}/status", body)
            case _:
                preconditions = {"resourceVersion": str(write.expected)} if write.expected is not None else None
                return client.ask("DELETE", path, preconditions and {"preconditions": preconditions})

    @staticmethod
    def _whole(write: Write, before: Content | None) -> Content:
        """The object that a client sends: as it has read it, with its change."""
        assert before is not None
        return merged(write.content, before)
