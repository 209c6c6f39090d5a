"""The operator as a process of its own, which is started, killed and started again."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.cluster.processes.process import CommandLine, Process
from fakeapiserver.sweep import computing
from fakeapiserver.sweep.surroundings import Surroundings

PANICS: Final = re.compile(
    r"^(panic: .*|fatal error: .*|.*[Oo]bserved a panic.*|Exception in thread .*|thread '.*' panicked at .*)$",
    re.MULTILINE,
)
# `dial tcp 10.96.0.7:2181: connect: connection refused`, `dial tcp: lookup db.default.svc on 10.0.0.2:53: no such host`
_UNANSWERED: Final = re.compile(
    r"dial tcp:? (?:lookup )?(?!127\.|\[::1\]|localhost)(\S+?):? .*(?:refused|timeout|no such host|unreachable|no route)"
)
_NONE: Final = Surroundings()


class Command:
    """The command line of an operator, with the placeholders of CommandLine."""

    def __init__(self, text: str | Sequence[str], env: Mapping[str, str] = {}, folder: Path | None = None) -> None:
        """Raises ValueError if the text is no command line."""
        self._line = CommandLine.of(text, env, folder)

    @property
    def words(self) -> Sequence[str]:
        """The command line."""
        return self._line.words

    @property
    def options(self) -> ClusterOptions:
        """Its clusters have no options, since its time is real."""
        return {}

    @property
    def serves_webhooks(self) -> bool:
        """Reports whether the command line or the environment has a placeholder of webhooks."""
        return self._line.serves_webhooks

    def new(self, quiet: float, surroundings: Surroundings) -> "OperatorProcess":
        """An operator that isn't running yet."""
        line = self._line
        command = CommandLine(line.words, {**surroundings.env, **line.env}, line.folder)
        return OperatorProcess(command, quiet, surroundings)


class OperatorProcess(Process):
    """An operator in a cluster. `quiet`: see OperatorUnderTest. Its environment is that of the command."""

    def __init__(self, command: CommandLine, quiet: float = 0.3, surroundings: Surroundings = _NONE) -> None:
        super().__init__(command)
        self.quiet = quiet
        self._surroundings = surroundings

    def start(self, cluster: Cluster, user: str, groups: Sequence[str]) -> None:
        """Starts the operator as a user of these groups. Raises as `launch` does."""
        webhooks = None
        with suppress(ValueError):  # a cluster without webhooks
            webhooks = cluster.webhooks
        pod = self._surroundings.pod(cluster, user, groups)
        self.launch(cluster.user(user, groups=groups), webhooks, pod)

    @property
    def computes(self) -> bool:
        """Whether a thread of the operator's processes is runnable for a while."""
        return self.group is not None and computing.computes(self.group)


def panics(output: str) -> list[str]:
    """The first lines of the crashes that an operator has written."""
    return [found[0].strip()[:300] for found in PANICS.finditer(output)]


def unanswered(output: str) -> str:
    """An address other than the API server's that an operator has called in vain, in the words of Go, or ""."""
    found = _UNANSWERED.search(output)
    return found[1] if found else ""
