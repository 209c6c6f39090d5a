"""What the containers of simulated pods do, as a test scripts it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fakeapiserver.apimachinery import labels
from fakeapiserver.client.cache.indexer import Object
from fakeapiserver.component_helpers.objects import controller_of, labels_of


@dataclass(frozen=True, slots=True)
class ContainerBehaviour:
    """One container's. Times in seconds of the cluster's clock.

    starts_after: the image is pulled and the container made.
    pull_error: the image never comes, with this message; "" it does.
    runs_for: until it ends by itself; None: it runs until it is stopped.
    exit_codes: of its first run, its second …; the last goes for all further ones.
    message: its termination message.
    ready_after: its start, when its readiness probe says yes; None: never. Where no probe is defined it is ready at once.
    stops_after: being told to stop, at most the grace period.
    stop_exit_code: then.
    """

    starts_after: float = 0.0
    pull_error: str = ""
    runs_for: float | None = None
    exit_codes: Sequence[int] = (0,)
    message: str = ""
    ready_after: float | None = 0.0
    stops_after: float = 0.0
    stop_exit_code: int = 0

    def exit_code(self, restarts: int) -> int:
        """Of the run after so many restarts."""
        return self.exit_codes[min(restarts, len(self.exit_codes) - 1)]


_RUNS: Final = ContainerBehaviour()
_COMPLETES: Final = ContainerBehaviour(runs_for=0.0)


@dataclass(frozen=True, slots=True)
class _Rule:
    namespace: str
    name: str
    selector: labels.Selector
    container: str
    changes: dict[str, Any]

    def matches(self, pod: Object, container: str) -> bool:
        metadata = pod["metadata"]
        return (
            self.container in ("", container)
            and self.namespace in ("", metadata["namespace"])
            and self.name in ("", metadata["name"])
            and self.selector.matches(labels_of(pod))
        )


class Behaviours:
    """The scripts of a cluster: of those that match, each says what it names, the last one last."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def add(
        self, *, namespace: str = "", name: str = "", selector: str = "", container: str = "", **changes: Any
    ) -> None:
        """Changes what containers do, by fields of ContainerBehaviour: of pods in `namespace`, called `name`, selected by
        `selector`, of containers called `container`; what isn't said is any. ValueError for what is no selector, TypeError for
        a field there isn't."""
        replace(_RUNS, **changes)
        if not changes.get("exit_codes", (0,)):
            raise ValueError("exit_codes needs one exit code at least")
        self._rules.append(_Rule(namespace, name, labels.parse(selector), container, changes))

    def clear(self) -> None:
        """Nothing is scripted any more."""
        self._rules.clear()

    def of(self, pod: Object, container: str, *, main: bool) -> ContainerBehaviour:
        """`main`: it is no init container."""
        owner = controller_of(pod)
        ends = not main or (owner is not None and owner["kind"] == "Job")
        found = _COMPLETES if ends else _RUNS
        for rule in self._rules:
            if rule.matches(pod, container):
                found = replace(found, **rule.changes)
        return found
