"""The events by which a server reports what it found wrong with addresses and node ports, and repaired."""

import socket

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339_micro
from fakeapiserver.clock import Timers
from fakeapiserver.server.upkeep.loopback_writer import LoopbackWriter


class RepairEvents:
    """`reporter`: the name of the controller in the events."""

    def __init__(self, reporter: str, writer: LoopbackWriter, clock: Timers) -> None:
        self._reporter = reporter
        self._writer = writer
        self._clock = clock
        self._reported: set[tuple[str, str, str]] = set()

    async def warn(self, obj: Object, reason: str, action: str, note: str) -> None:
        """Creates an event about an object, unless the same has been reported."""
        meta = metadata(obj)
        if (meta["uid"], reason, note) in self._reported:
            return
        self._reported.add((meta["uid"], reason, note))
        now = self._clock.now()
        regarding = {"kind": obj["kind"], "apiVersion": obj["apiVersion"]}
        regarding |= {name: meta[name] for name in ("namespace", "name", "uid", "resourceVersion") if meta.get(name)}
        event = {
            "metadata": {
                "name": f"{meta['name']}.{int(now * 1e9):x}",
                "namespace": meta.get("namespace", "default"),
            },
            "eventTime": rfc3339_micro(now),
            "reportingController": self._reporter,
            "reportingInstance": f"{self._reporter}-{socket.gethostname()}",
            "action": action,
            "reason": reason,
            "regarding": regarding,
            "note": note,
            "type": "Warning",
        }
        await self._writer.create("events.events.k8s.io", event)
