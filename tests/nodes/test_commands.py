"""What a container's command says of its run."""

from typing import Any

import pytest

from fakeapiserver.nodes.commands import Run, run_of


def sh(script: str) -> dict[str, Any]:
    return {"image": "busybox", "command": ["/bin/sh", "-c", script]}


@pytest.mark.parametrize(
    ("container", "run"),
    [
        ({"image": "busybox", "command": ["sleep", "300"]}, Run(300)),
        ({"image": "busybox", "command": ["sleep"], "args": ["1m", "30"]}, Run(90)),
        ({"image": "busybox", "command": ["sleep", "infinity"]}, Run(None)),
        ({"image": "busybox", "command": ["/bin/true"]}, Run(0)),
        ({"image": "busybox", "command": ["/bin/false"]}, Run(0, 1)),
        ({"image": "busybox", "command": ["sh", "-c"], "args": ["exit 3"]}, Run(0, 3)),
        (sh("exit 256"), Run(0, 0)),
        (sh("sleep 2; exit 1"), Run(2, 1)),
        (sh("echo 'a; b' && sleep 1"), None),
        (sh("echo hello $NAME\nsleep 5"), Run(5)),
        (sh("false && exit 7"), Run(0, 1)),
        (sh("false || exit 7"), Run(0, 7)),
        (sh("false\nexec sleep 9\nexit 1"), Run(9)),
        (sh("sleep 1 # a while"), Run(1)),
        ({"image": "busybox", "command": ["sh", "-ec", "false; exit 7"]}, Run(0, 1)),
        (sh("false; exit"), Run(0, 1)),
        (sh("exit $(( $RANDOM / 16384 ))"), None),
        (sh("while true; do sleep 1; done"), None),
        (sh("sleep $TIME"), None),
        (sh("echo done > /result"), None),
        (sh("sleep 5 &"), None),
        (sh("'"), None),
        ({"image": "busybox", "command": ["sh"]}, None),
        ({"image": "registry.k8s.io/pause:3.10.1"}, Run(None)),
        ({"image": "localhost:5000/pause@sha256:aa"}, Run(None)),
        ({"image": "nginx"}, None),
        ({"image": "busybox", "args": ["sleep", "1"]}, None),  # for an entrypoint that only the image knows
        ({}, None),
    ],
)
def test_a_plain_command_tells_when_and_how_it_ends(container: dict[str, Any], run: Run | None) -> None:
    assert run_of(container) == run
