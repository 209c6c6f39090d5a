"""Brings a perturbation about while a case runs, by faults and by killing the operator."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.cluster.faults import Fault
from fakeapiserver.controller_manager.manager import NotSettled
from fakeapiserver.sweep.perturbation import BLINDING, Perturbation, WritePoint
from fakeapiserver.sweep.states import TOUCHED

# Long enough for everything that reacts to a fault, and short enough not to be waited for.
_HELD: Final = 600.0
_LATE: Final = 0.4
_LOOK: Final = 0.2
_COMMIT_SECONDS: Final = 5.0
_PAUSE: Final = 0.005
# Seconds for which the other controllers may go on, and within which an operator has been sent what they have done.
_OTHERS_SECONDS: Final = 10.0
_SENT_SECONDS: Final = 0.3
# Seconds until pods are ready, and the time that passes: longer than the progress deadline of Deployments.
_READY_AFTER: Final = 900.0
_IS_BEING_DELETED: Final = "has(oldObject.metadata.deletionTimestamp)"


class Conductor:
    """`stop` and `start` end and start the operator, whose requests are those of `users`."""

    def __init__(
        self,
        cluster: Cluster,
        perturbation: Perturbation | None,
        stop: Callable[[], None],
        start: Callable[[], None],
        users: str,
    ) -> None:
        self._cluster = cluster
        self._perturbation = perturbation
        self._stop_operator = stop
        self._start_operator = start
        self._users = users
        self._faults: list[Fault] = []
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._acting = threading.Event()
        self.reached = perturbation is None
        # An API server that stays at an earlier state is there, and the operator is served by it.
        self._frozen = self._is_behind = False
        self._error: BaseException | None = None
        self._has_acted = False
        self._is_away = False
        self._step = -1

    # ------------------------------------------------------------ called by the case

    def begin(self) -> None:
        """Called before the operator starts."""
        perturbation = self._perturbation
        if perturbation is None:
            return
        if perturbation.kind == "late" and perturbation.step < 0:
            self._be_late(perturbation)
        elif perturbation.kind == "clock":
            self.reached = True
            if not perturbation.when:
                self._cluster.nodes.script(ready_after=_READY_AFTER)
        elif perturbation.point is None or perturbation.point.step < 0:
            self._await_write(perturbation)

    def before_step(self, number: int) -> None:
        perturbation = self._perturbation
        self._step = number
        if perturbation is not None and perturbation.point is not None and perturbation.point.step == number:
            self._await_write(perturbation)
        if perturbation is None or perturbation.step != number:
            return
        where = self._of_resource(perturbation.resource)
        match perturbation.kind:
            case "unobserved":
                self._add(verb="watch", **where, unobserved=perturbation.object, states=perturbation.states)
            case "reordered":
                self._add(verb="watch", **where, delay=_HELD)
            case "late":
                self._be_late(perturbation)
            case "lease":
                self._add(resource="leases", holder="another-candidate")
            case _:
                return
        self.reached = True

    def acted(self, number: int) -> None:
        """Called when the user has done what the step is."""
        perturbation = self._perturbation
        if perturbation is not None and self._is_away and perturbation.until <= number:
            self._is_away = False
            self._start_operator()
        if perturbation is not None and perturbation.kind == "webhook" and perturbation.step == number:
            self._faults.append(self._cluster.faults.add(webhook=perturbation.object, reset="before"))

    def after_step(self, number: int) -> bool:
        """Reports whether something was done that the operator has to digest."""
        perturbation = self._perturbation
        if perturbation is None:
            return False
        if perturbation.kind == "clock":
            self._cluster.clock.advance(_READY_AFTER)
            return True
        if perturbation.kind == "webhook" and self._faults:
            self.reached = self._faults[0].hits > 0
            self._clear()
            return True
        if perturbation.kind in (*BLINDING, "late", "lease") and perturbation.until == number:
            self._clear()
            return True
        if perturbation.kind != "stale":
            return False
        if perturbation.point is None and perturbation.step == number:
            self._freeze()
        if perturbation.until != number or not self._frozen:
            return False
        self.reached = self._is_behind = True
        self._stop_operator()
        self._start_operator()
        return True

    @property
    def delay(self) -> float:
        """Seconds by which events of watches come late."""
        is_late = self._perturbation is not None and self._perturbation.kind == "late"
        return _LATE if is_late and self._faults else 0.0

    @property
    def is_idle(self) -> bool:
        """Reports whether nothing was done that may have an effect on what the operator knows or does."""
        perturbation = self._perturbation
        if perturbation is None:
            return True
        point = perturbation.point
        if point is not None and point.step == self._step + 1:
            return False  # the last writes of this step must not be the first ones of the next
        return not self._has_acted and (point is not None or perturbation.kind == "slow")

    @property
    def holds(self) -> bool:
        """Reports whether the operator can't know the present state yet."""
        return self._is_behind or self.is_blinding

    @property
    def is_blinding(self) -> bool:
        """Reports whether events are held back, a webhook is down or the operator is away, until the end of a step."""
        is_of_step = self._perturbation is not None and self._perturbation.kind in (*BLINDING, "webhook", "clock")
        return self._is_away or (is_of_step and bool(self._faults))

    def catch_up(self) -> bool:
        """Lets a stale API server catch up, once the operator has come to rest with it. Reports whether it was behind."""
        was_behind, self._is_behind = self._is_behind, False
        if was_behind:
            self._clear()
        return was_behind

    def finish(self) -> bool:
        """Waits until what has begun is done. Reports whether there was something."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        acting = self._acting.is_set()
        while self._acting.is_set():
            time.sleep(_PAUSE)
        return acting

    def stop(self) -> None:
        self._ended.set()
        self._clear()
        if self._thread is not None:
            self._thread.join()

    # ------------------------------------------------------------ at a write

    def _await_write(self, perturbation: Perturbation) -> None:
        """Lets a thread of its own wait for the writes of the perturbation, if it has some."""
        if perturbation.kind == "slow":
            first = self._hold_answers(perturbation)
            self._thread = threading.Thread(target=self._delay_answers, args=(perturbation, first), daemon=True)
        elif perturbation.point is not None:
            self._prepare(perturbation, perturbation.point)
            self._thread = threading.Thread(target=self._watch, args=(perturbation, perturbation.point), daemon=True)
        else:
            return
        self._thread.start()

    def _prepare(self, perturbation: Perturbation, point: WritePoint) -> None:
        where: dict[str, Any] = {**point.fields, "nth": point.occurrence}
        match perturbation.kind:
            case "crash" | "away" if perturbation.when == "after":
                self._add(**where, rate=1)
            case "refuse" if perturbation.status:
                self._add(**where, status=perturbation.status, when=perturbation.when)
            case "refuse":
                self._add(**where, reset=perturbation.when)
            case _:
                self._add(**where, hang=True)

    def _watch(self, perturbation: Perturbation, point: WritePoint) -> None:
        """In a thread of its own: acts when the write comes."""
        fault = self._faults[0]
        if not self._comes(fault):
            return
        self._acting.set()
        self._has_acted = True
        try:
            self._act(perturbation, point, fault)
            self.reached = self.reached or perturbation.kind != "stale"  # which begins at the restart
        except BaseException as error:
            self._error = error
        finally:
            self._acting.clear()

    def _act(self, perturbation: Perturbation, point: WritePoint, fault: Fault) -> None:
        match perturbation.kind:
            case "crash" | "away":
                if perturbation.when == "after":
                    self._wait_until_answered(fault)
                self._stop_operator()
                self._clear()
                if perturbation.kind == "away":
                    self._is_away = True
                else:
                    self._start_operator()
            case "conflict":
                self._touch(point)
                self._clear()
            case "restart":
                self._cluster.restart(compact=True)
                self._clear()
            case "stale":
                self._freeze().stay_at(fault.revision)
                fault.remove()
                self._faults.remove(fault)

    def _comes(self, fault: Fault) -> bool:
        """Returns when the fault strikes; False if the case has ended before."""
        while not self._ended.is_set():
            with suppress(TimeoutError):
                fault.wait(1, _LOOK)
                return True
        return False

    def _delay_answers(self, perturbation: Perturbation, fault: Fault) -> None:
        """In a thread of its own: lets the answer of each write come when the rest of the cluster is at rest."""
        while self._comes(fault):
            held = fault
            self._acting.set()
            self._has_acted = True
            try:
                self._wait_until_answered(fault)
                self._wait_for_others()
                self.reached = True
                if perturbation.point is None:
                    fault = self._hold_answers(perturbation)
            except BaseException as error:
                self._error = error
            finally:
                held.remove()
                self._acting.clear()
            if fault is held:
                return

    def _hold_answers(self, perturbation: Perturbation) -> Fault:
        if perturbation.point is not None:
            where: dict[str, Any] = {**perturbation.point.fields, "nth": perturbation.point.occurrence}
        else:
            namespace, _, name = perturbation.object.rpartition("/")
            where = {**self._of_resource(perturbation.resource), "namespace": namespace or None, "name": name}
            where |= {"verb": ["update", "patch"], "object": _IS_BEING_DELETED}
        return self._add(**where, hang=True, when="after")

    def _wait_for_others(self) -> None:
        """Returns when the garbage collector and the other controllers are at rest, and the operator has been sent what they have done."""
        with suppress(NotSettled, ValueError):  # a cluster without controllers
            self._cluster.controllers.settle(_OTHERS_SECONDS)
            time.sleep(_SENT_SECONDS)
            self._cluster.controllers.settle(_OTHERS_SECONDS)

    def _wait_until_answered(self, fault: Fault) -> None:
        """Returns when the write is stored and its answer has begun."""
        deadline = time.monotonic() + _COMMIT_SECONDS
        number = f"fault {fault.id} "
        while time.monotonic() < deadline:
            if any(entry.fault.startswith(number) for entry in self._cluster.requests.all().by(user=self._users)):
                return
            time.sleep(_PAUSE)

    def _touch(self, point: WritePoint) -> None:
        """Another writer adds an annotation and takes it away, since operators copy annotations to where they change hashes and names."""
        for value in ("true", None):
            with suppress(StatusError):
                self._cluster.patch(
                    f"{point.resource}/{point.name}",
                    {"metadata": {"annotations": {TOUCHED: value}}},
                    namespace=point.namespace or None,
                )

    def _freeze(self) -> Fault:
        """The API server of all later starts of the operator stays at the state of now."""
        started = len({entry.user for entry in self._cluster.requests.all().by(user=self._users)})
        users = [f"{self._users.removesuffix('*')}{number}" for number in range(started + 1, started + 10)]
        resource = self._perturbation.resource if self._perturbation is not None else ""
        where: dict[str, Any] = {**self._of_resource(resource)}
        fault = self._cluster.faults.add(verb=["get", "list", "watch"], user=users, stale=True, **where)
        self._faults.append(fault)
        self._frozen = True
        return fault

    # ------------------------------------------------------------ faults

    def _add(self, **fields: Any) -> Fault:
        self._faults.append(fault := self._cluster.faults.add(user=[self._users], **fields))
        return fault

    def _be_late(self, perturbation: Perturbation) -> None:
        self._add(verb="watch", **self._of_resource(perturbation.resource), delay=_LATE)
        self.reached = True

    def _clear(self) -> None:
        while self._faults:
            self._faults.pop().remove()

    @staticmethod
    def _of_resource(name: str) -> dict[str, str]:
        """The fields of faults for a resource; none for "", which is every resource."""
        resource, _, group = name.partition(".")
        return {field: text for field, text in (("resource", resource), ("group", group)) if text}
