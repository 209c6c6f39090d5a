"""Tests what containers do by their commands and images: how long they run, how they end, what they print."""

from itertools import islice
from typing import Any

import pytest

from fakeapiserver.nodes import commands
from fakeapiserver.nodes.behaviour import Behaviours
from fakeapiserver.nodes.commands import Run, needed_objects, process_of

NOT_FOLLOWED = Run(0, is_followed=False)


def pod(container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "busybox", **container}]
    return {"metadata": {"name": "p", "namespace": "shop", "uid": "u"}, "spec": {"containers": containers, **spec}}


def run_of(container: dict[str, Any]) -> Run | None:
    found = pod(container)
    process = process_of(found, found["spec"]["containers"][0], {})
    return None if process is None else commands.run_of(process)


def sh(script: str) -> dict[str, Any]:
    return {"command": ["/bin/sh", "-c", script]}


@pytest.mark.parametrize(
    ("container", "run"),
    [
        ({"command": ["sleep", "300"]}, Run(300)),
        ({"command": ["sleep"], "args": ["1m", "30"]}, Run(90)),
        ({"command": ["sleep", "infinity"]}, Run(None)),
        ({"command": ["/bin/true"]}, Run(0)),
        ({"command": ["/bin/false"]}, Run(0, 1)),
        ({"command": ["tail", "-f", "/dev/null"]}, Run(None)),
        ({"command": ["sh", "-c"], "args": ["exit 3"]}, Run(0, 3)),
        ({"command": ["sh", "-ec", "false; exit 7"]}, Run(0, 1)),
        ({"command": ["sh"]}, NOT_FOLLOWED),
        ({"command": ["sh"], "stdin": True}, Run(None, reads=True)),
        ({"command": ["/manager", "--leader-elect"]}, NOT_FOLLOWED),
        ({"command": ["sleep", "$(SECONDS)"], "env": [{"name": "SECONDS", "value": "7"}]}, Run(7)),
        (sh("sleep 2; exit 1"), Run(2, 1)),
        (sh("echo 'a; b' && sleep 1"), Run(1)),
        (sh("exit $(( $RANDOM / 16384 ))"), NOT_FOLLOWED),
        (sh("while true; do sleep 1; done"), Run(None)),
        (sh("echo done > /dev/termination-log"), Run(0, message="done\n")),
        (sh("sleep 5; ./serve"), Run(5, is_followed=False)),
        (sh("sleep 5 &"), NOT_FOLLOWED),
        ({"args": ["sleep", "1"]}, Run(1)),
        ({"args": ["echo", "hi"], "image": "example.com/own:1"}, Run(0)),
        ({"args": ["--verbose"], "image": "example.com/own:1"}, NOT_FOLLOWED),
        ({"args": ["-s", "http://web"], "image": "curlimages/curl:8.1.0"}, Run(0)),
        ({"args": ["sh", "-c", "exit 4"], "image": "curlimages/curl"}, Run(0, 4)),
        ({"args": ["web:80"], "command": ["wget"]}, Run(0)),
        ({"args": ["netexec"], "image": "registry.k8s.io/e2e-test-images/agnhost:2.45"}, Run(None)),
        ({"image": "registry.k8s.io/pause:3.10.1"}, Run(None)),
        ({"image": "localhost:5000/pause@sha256:aa"}, Run(None)),
        ({"image": "hello-world"}, Run(0)),
        ({"image": "alpine"}, NOT_FOLLOWED),
        ({"image": "nginx"}, None),
    ],
)
def test_a_command_says_when_and_how_it_ends(container: dict[str, Any], run: Run | None) -> None:
    assert run_of(container) == run


MOUNTED = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}


@pytest.mark.parametrize(
    ("script", "exit_codes", "output"),
    [
        ("[[ -r /data/foo ]] && exit 0; touch /data/foo; exit 1", (1, 0), ""),
        ("[[ -r /tmp/foo ]] && exit 0; touch /tmp/foo; exit 1", (1,), ""),
        ("[ -e /data/b ] && exit 0; [ -e /data/a ] && touch /data/b && echo b; touch /data/a; exit 1", (1, 1, 0), "b"),
        ("[ -e /data/foo ] && sleep 60; touch /data/foo; exit 3", (3,), ""),
    ],
    ids=["once", "not mounted", "twice", "takes another time"],
)
def test_a_container_finds_after_a_restart_what_it_wrote_to_its_volumes(
    script: str, exit_codes: tuple[int, ...], output: str
) -> None:
    found = pod({**sh(script), **MOUNTED}, volumes=[{"name": "data", "emptyDir": {}}])
    process = process_of(found, found["spec"]["containers"][0], {})
    assert process is not None
    assert commands.exit_codes_of(process) == exit_codes
    assert "\n".join(line for _, line in commands.restarted(process, 1).lines(0)) == output


JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
UNKNOWN = {"command": ["/own"]}


@pytest.mark.parametrize(
    ("container", "policy", "job", "runs_for"),
    [
        (UNKNOWN, "Always", False, None),
        (UNKNOWN, "Never", False, 0),
        (UNKNOWN, "OnFailure", False, 0),
        (UNKNOWN, "Never", True, 0),
        (sh("sleep 3; /own"), "Always", False, None),
        (sh("sleep 3; /own"), "Never", False, 3),
        (sh("sleep 3"), "Always", False, 3),
        ({"image": "example.com/own"}, "Never", False, None),
        ({"image": "example.com/own"}, "Never", True, 0),
        ({"image": "busybox"}, "Always", False, None),
        ({"image": "busybox"}, "Never", False, 0),
        ({"command": ["sleep", "infinity"]}, "Never", True, None),
    ],
)
def test_what_is_not_followed_ends_where_the_restart_policy_expects_an_end(
    container: dict[str, Any], policy: str, job: bool, runs_for: float | None
) -> None:
    found = pod(container, restartPolicy=policy)
    if job:
        found["metadata"]["ownerReferences"] = [JOB]
    assert Behaviours().of(found, "c", main=True).runs_for == runs_for


def test_lines_come_in_the_time_of_their_commands() -> None:
    found = pod(sh("echo begin; i=0; while true; do printf $i; sleep 5; echo; i=$((i+1)); done"))
    process = process_of(found, found["spec"]["containers"][0], {})
    assert process is not None
    assert list(islice(process.lines(0), 4)) == [(0, "begin"), (5, "0"), (10, "1"), (15, "2")]


def test_dates_are_those_of_the_clock() -> None:
    found = pod(sh("sleep 90; date; date -u +%s; date +%Y-%m-%dT%H:%M:%SZ"))
    process = process_of(found, found["spec"]["containers"][0], {})
    assert process is not None
    printed = [line for _, line in process.lines(1_700_000_000)]
    assert printed == ["Tue Nov 14 22:14:50 UTC 2023", "1700000090", "2023-11-14T22:14:50Z"]


# ------------------------------------------------------------ ConfigMaps and Secrets

OBJECTS = {
    ("ConfigMap", "settings"): {"data": {"color": "blue", "size": "3"}, "binaryData": {"raw": "aGk="}},
    ("Secret", "keys"): {"data": {"password": "czNjcmV0"}},
}
FIELDS = {
    "env": [
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "color"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "password"}}},
        {"name": "NOTHING", "valueFrom": {"secretKeyRef": {"name": "other", "key": "x", "optional": True}}},
        {"name": "URL", "value": "http://$(NAME)/$$(COLOR)/$(UNKNOWN)"},
        {"name": "CORES", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ],
    "envFrom": [{"prefix": "S_", "configMapRef": {"name": "settings"}}],
    "resources": {"limits": {"cpu": "1500m"}},
    "volumeMounts": [
        {"name": "settings", "mountPath": "/etc/settings"},
        {"name": "settings", "mountPath": "/etc/color", "subPath": "color"},
        {"name": "all", "mountPath": "/all/"},
    ],
}
VOLUMES = [
    {"name": "settings", "configMap": {"name": "settings"}},
    {
        "name": "all",
        "projected": {
            "sources": [
                {"secret": {"name": "keys", "items": [{"key": "password", "path": "deep/er"}]}},
                {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            ]
        },
    },
]


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("echo $NAME $COLOR ${PASSWORD} [$NOTHING] $CORES", "p blue s3cret [] 2"),
        ("echo $URL", "http://p/$(COLOR)/$(UNKNOWN)"),
        ("echo $S_size $S_raw $HOSTNAME", "3 hi p"),
        ("cat /etc/settings/color /etc/color", "blueblue"),
        ("cat /all/deep/er /all/labels", 's3cretapp="web"'),
        ("ls /etc/settings", "color\nraw\nsize"),
        ("for f in /etc/settings/*; do echo $f; done", "/etc/settings/color\n/etc/settings/raw\n/etc/settings/size"),
        ("cat /etc/nothing", "cat: can't open '/etc/nothing': No such file or directory"),
        ("printenv COLOR", "blue"),
    ],
)
def test_variables_and_mounted_files_are_seen(script: str, printed: str) -> None:
    found = pod({**sh(script), **FIELDS}, volumes=VOLUMES)
    found["metadata"]["labels"] = {"app": "web"}
    process = process_of(found, found["spec"]["containers"][0], OBJECTS)
    assert process is not None
    assert "\n".join(line for _, line in process.lines(0)) == printed


@pytest.mark.parametrize(
    ("script", "needed"),
    [
        ("sleep 5", []),
        ("cat /etc/settings/color", ["ConfigMap/settings"]),
        ("cat /all/deep/er", ["Secret/keys"]),
        ("echo $COLOR", ["ConfigMap/settings", "Secret/keys", "Secret/other"]),
    ],
)
def test_only_objects_that_a_command_can_see_are_read(script: str, needed: list[str]) -> None:
    found = pod({**sh(script), **FIELDS}, volumes=VOLUMES)
    assert sorted(f"{kind}/{name}" for kind, name in needed_objects(found)) == needed
