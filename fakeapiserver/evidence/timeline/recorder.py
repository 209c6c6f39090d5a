"""Records what happens in a server: joins the recording with its sources."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from fakeapiserver.clock import AdjustableClock, Clock
from fakeapiserver.endpoints.discovery import version_info
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.evidence.request_log import RequestLogging
from fakeapiserver.evidence.timeline import records
from fakeapiserver.evidence.timeline.recording import KEPT, KEPT_BYTES, Recording
from fakeapiserver.evidence.timeline.requests import Auditing, Requests
from fakeapiserver.evidence.timeline.states import States
from fakeapiserver.evidence.timeline.work import Work
from fakeapiserver.storage.memory import MemoryStorage


class ActiveFault(Protocol):
    """A fault that exists."""

    @property
    def id(self) -> int: ...

    @property
    def fields(self) -> Mapping[str, Any]: ...


class Modes(Protocol):
    """The modes of controllers: run, step or off."""

    @property
    def modes(self) -> Mapping[str, str]: ...


class Recorded(Protocol):
    """The parts of a server that are recorded, without its request log and auditing."""

    @property
    def clock(self) -> Clock: ...

    @property
    def storage(self) -> MemoryStorage: ...

    @property
    def scopes(self) -> RequestScopes: ...

    @property
    def controllers(self) -> Modes | None: ...

    @property
    def nodes(self) -> int:
        """The number of simulated nodes."""

    @property
    def title(self) -> str:
        """The text that distinguishes the server, if any."""


class Recorder:
    """Records from `begin` on. `requests` is to be put in front of the server's request log and auditing, `work` is for its controllers."""

    def __init__(
        self,
        server: Recorded,
        logging: RequestLogging,
        auditing: Auditing,
        most: int = KEPT,
        most_bytes: int = KEPT_BYTES,
    ) -> None:
        self._server = server
        self.scopes = server.scopes
        # The first record of the recording that this one goes on with, if it was begun by an earlier server.
        self.earlier: records.Start | None = None
        self._faults: Mapping[int, ActiveFault] = {}
        self.states = States(server.storage, server.scopes.table)
        self.work = Work()
        self.requests = Requests(logging, auditing, server.storage, self.work.is_running)
        self.recording = Recording(server.clock, self._start, self._forgotten, most, most_bytes)
        for source in (self.states, self.work, self.requests):
            source.recording = self.recording
        self.requests.before = self.states.check_kinds

    def begin(self, *, with_history: bool = False) -> None:
        """Records the present state of everything, and every change from now on. `with_history`: also earlier changes that are known."""
        self.states.begin(with_history=with_history)

    def restart(self) -> None:
        """Forgets everything, and records from now on."""
        self.recording.restart()
        self.states.begin()

    def faults_changed(self, faults: "Sequence[ActiveFault]") -> None:
        """Records the faults that were added and removed since the last call."""
        now = {fault.id: fault for fault in faults}
        for number in self._faults.keys() - now.keys():
            self._add_fault("remove", self._faults[number])
        for number in now.keys() - self._faults.keys():
            self._add_fault("add", now[number])
        self._faults = now

    def clock_changed(self, change: Literal["stop", "start", "advance", "jump"], seconds: float) -> None:
        """Records a change of the cluster's clock."""
        recording = self.recording
        recording.add(records.Clock(at=recording.at(), time=recording.clock.now(), change=change, seconds=seconds))

    def _add_fault(self, change: Literal["add", "remove"], fault: ActiveFault) -> None:
        at, time = self.recording.at(), self.recording.clock.now()
        self.recording.add(records.Fault(at=at, time=time, id=fault.id, change=change, fault=fault.fields))

    def _start(self) -> records.Start:
        recording = self.recording
        version: str = version_info(self.scopes.table)["gitVersion"]
        controllers = self._server.controllers
        earlier = self.earlier.controllers if self.earlier is not None else {}
        return records.Start(
            version=version,
            began=recording.began,
            time=recording.began_time,
            revision=recording.oldest,
            nodes=self._server.nodes,
            controllers=controllers.modes if controllers is not None else earlier,
            title=self._server.title,
            stopped=isinstance(recording.clock, AdjustableClock) and recording.clock.stopped,
        )

    def _forgotten(self, record: records.State | records.Request) -> None:
        if isinstance(record, records.State):
            self.states.forget(record)
        else:
            self.requests.forget(record)
