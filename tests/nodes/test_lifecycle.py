"""What becomes of a pod on a simulated node, as a story: after so many seconds, in this phase, with these containers."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.nodes.behaviour import Behaviours
from fakeapiserver.nodes.lifecycle import Place, next_status

START = 1_700_000_000.0
Object = dict[str, Any]


def pod(**spec: Any) -> Object:
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}], "restartPolicy": "Always", **spec},
    }


class Life:
    """One pod, looked at whenever it asks for it."""

    def __init__(self, obj: Object, *scripts: Object) -> None:
        self.pod, self.now = obj, START
        self.behaviours = Behaviours()
        for script in scripts:
            self.behaviours.add(**script)

    def until(self, seconds: float) -> "Life":
        """Goes on until so many seconds after the start."""
        for _ in range(1000):
            found = next_status(
                self.pod,
                Place("172.18.0.3", "100.64.0.1"),
                lambda container, main: self.behaviours.of(self.pod, container, main=main),
                self.now,
            )
            if found.status is not None:
                self.pod = {**self.pod, "status": {**self.pod.get("status", {}), **found.status}}
                continue
            if found.after is None or self.now + found.after > START + seconds:
                self.now = START + seconds
                return self
            self.now += found.after
        raise AssertionError("it never comes to rest")

    @property
    def phase(self) -> str:
        found: str = self.pod["status"]["phase"]
        return found

    @property
    def containers(self) -> list[str]:
        """`name state (detail) xRestarts ready`, each."""
        shown = []
        for status in (*self.pod["status"].get("initContainerStatuses", ()), *self.pod["status"]["containerStatuses"]):
            [(state, about)] = status["state"].items()
            detail = about.get("reason", "") + (f" {about['exitCode']}" if "exitCode" in about else "")
            restarts = f" x{status['restartCount']}" if status["restartCount"] else ""
            ready = " ready" if status["ready"] else ""
            shown.append(f"{status['name']} {state}" + (f" ({detail})" if detail else "") + restarts + ready)
        return shown

    def condition(self, kind: str) -> str:
        found = next(row for row in self.pod["status"]["conditions"] if row["type"] == kind)
        return " ".join(filter(None, (found["status"], found.get("reason"), found.get("message"))))


ENDS = {"runs_for": 5.0}
FAILS = {"runs_for": 5.0, "exit_codes": (1,)}


@pytest.mark.parametrize(
    ("spec", "scripts", "after", "phase", "containers"),
    [
        pytest.param({}, [], 0, "Running", ["c running ready"], id="it starts at once"),
        pytest.param({}, [{"starts_after": 3.0}], 2, "Pending", ["c waiting (ContainerCreating)"], id="it is made"),
        pytest.param({}, [{"starts_after": 3.0}], 3, "Running", ["c running ready"], id="it was made"),
        pytest.param(
            {}, [{"pull_error": "no such host"}], 0, "Pending", ["c waiting (ImagePullBackOff)"], id="no image"
        ),
        pytest.param({"restartPolicy": "Never"}, [ENDS], 4, "Running", ["c running ready"], id="it works"),
        pytest.param({"restartPolicy": "Never"}, [ENDS], 5, "Succeeded", ["c terminated (Completed 0)"], id="it ends"),
        pytest.param({"restartPolicy": "Never"}, [FAILS], 5, "Failed", ["c terminated (Error 1)"], id="it fails"),
        pytest.param(
            {"restartPolicy": "OnFailure"},
            [FAILS],
            5,
            "Running",
            ["c running x1 ready"],
            id="the first restart is at once",
        ),
        pytest.param(
            {}, [FAILS], 12, "Running", ["c waiting (CrashLoopBackOff) x1"], id="the second waits for ten seconds"
        ),
        pytest.param({}, [FAILS], 20, "Running", ["c running x2 ready"], id="which are over"),
        pytest.param({}, [FAILS], 44, "Running", ["c waiting (CrashLoopBackOff) x2"], id="the third for twenty"),
        pytest.param(
            {"restartPolicy": "OnFailure"},
            [{"runs_for": 1.0, "exit_codes": (1, 0)}],
            10,
            "Succeeded",
            ["c terminated (Completed 0) x1"],
            id="it succeeds in the end",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "x"}]},
            [{"container": "i", "runs_for": 2.0}],
            1,
            "Pending",
            ["i running", "c waiting (PodInitializing)"],
            id="it waits for what comes first",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "x"}]},
            [{"container": "i", "runs_for": 2.0}],
            2,
            "Running",
            ["i terminated (Completed 0) ready", "c running ready"],
            id="which is done",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "x"}], "restartPolicy": "Never"},
            [{"container": "i", "exit_codes": (3,)}],
            0,
            "Failed",
            ["i terminated (Error 3)", "c waiting (PodInitializing)"],
            id="which has failed",
        ),
        pytest.param(
            {"initContainers": [{"name": "s", "image": "x", "restartPolicy": "Always"}], "restartPolicy": "Never"},
            [{"container": "c", **ENDS}],
            4,
            "Running",
            ["s running ready", "c running ready"],
            id="a sidecar stands beside it",
        ),
        pytest.param(
            {"initContainers": [{"name": "s", "image": "x", "restartPolicy": "Always"}], "restartPolicy": "Never"},
            [{"container": "c", **ENDS}],
            5,
            "Succeeded",
            ["s terminated (Completed 0)", "c terminated (Completed 0)"],
            id="and ends with it",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 30}, [], 30, "Failed", ["c terminated (Error 137)"], id="it may not take longer"
        ),
    ],
)
def test_a_pod_lives(spec: Object, scripts: list[Object], after: float, phase: str, containers: list[str]) -> None:
    life = Life(pod(**spec), *scripts).until(after)
    assert (life.phase, life.containers) == (phase, containers)


PROBED = {"containers": [{"name": "c", "image": "x", "readinessProbe": {"httpGet": {"port": 80}}}]}


@pytest.mark.parametrize(
    ("spec", "script", "after", "ready"),
    [
        ({}, {}, 0, "True"),
        (PROBED, {}, 0, "True"),
        (PROBED, {"ready_after": 5.0}, 4, "False ContainersNotReady containers with unready status: [c]"),
        (PROBED, {"ready_after": 5.0}, 5, "True"),
        (PROBED, {"ready_after": None}, 3600, "False ContainersNotReady containers with unready status: [c]"),
        (
            {"readinessGates": [{"conditionType": "example.com/lb"}]},
            {},
            0,
            'False ReadinessGatesNotReady corresponding condition of pod readiness gate "example.com/lb" does not exist.',
        ),
        ({"restartPolicy": "Never"}, {"runs_for": 0.0}, 0, "False PodCompleted"),
    ],
)
def test_it_is_ready_when_its_probes_and_gates_say_so(spec: Object, script: Object, after: float, ready: str) -> None:
    assert Life(pod(**spec), script).until(after).condition("Ready") == ready


@pytest.mark.parametrize(
    ("script", "grace", "waits", "phase", "exit_code"),
    [
        ({}, 30, None, "Succeeded", 0),
        ({"stops_after": 5.0}, 30, 5.0, "Running", None),
        ({"stop_exit_code": 143}, 30, None, "Failed", 143),
        ({"stops_after": 60.0}, 30, 30.0, "Running", None),
        ({"stops_after": 60.0}, 0, None, "Failed", 137),
    ],
)
def test_it_stops_in_its_time(
    script: Object, grace: int, waits: float | None, phase: str, exit_code: int | None
) -> None:
    life = Life(pod(), script).until(0)
    told = {"deletionTimestamp": rfc3339(START + grace), "deletionGracePeriodSeconds": grace}
    life.pod = {**life.pod, "metadata": {**life.pod["metadata"], **told}}
    found = next_status(
        life.pod, Place("h", "i"), lambda name, main: life.behaviours.of(life.pod, name, main=main), life.now
    )
    assert found.after == waits
    assert found.gone == (waits is None)
    status = found.status or life.pod["status"]
    assert status["phase"] == phase
    terminated = status["containerStatuses"][0]["state"].get("terminated", {})
    assert terminated.get("exitCode") == exit_code


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ({}, True),
        ({"namespace": "shop", "name": "web", "container": "c", "selector": "app=web"}, True),
        ({"namespace": "other"}, False),
        ({"name": "other"}, False),
        ({"container": "other"}, False),
        ({"selector": "app in (a, b)"}, False),
    ],
)
def test_a_script_is_for_what_it_names(rule: Object, matches: bool) -> None:
    behaviours = Behaviours()
    behaviours.add(**rule, runs_for=7.0)
    assert (behaviours.of(pod(), "c", main=True).runs_for == 7.0) == matches


def test_a_script_of_what_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match="runs_fro"):
        Behaviours().add(runs_fro=1.0)
    with pytest.raises(ValueError, match="exit_codes"):
        Behaviours().add(exit_codes=())


def test_what_a_command_plainly_says_is_done_and_a_script_says_more() -> None:
    containers = [{"name": "c", "image": "busybox", "command": ["sh", "-c", "sleep 60; exit 3"]}]
    obj = pod(containers=containers, restartPolicy="Never")
    assert Life(obj).until(59).phase == "Running"
    ended = Life(obj).until(61)
    assert (ended.phase, ended.containers) == ("Failed", ["c terminated (Error 3)"])
    assert Life(obj, {"exit_codes": (0,), "runs_for": 5.0}).until(6).phase == "Succeeded"


def test_ephemeral_containers_run_once_beside_the_pod() -> None:
    debuggers = [
        {"name": "shell", "image": "busybox", "command": ["sh"]},
        {"name": "look", "image": "busybox", "command": ["true"]},
    ]
    life = Life(pod(ephemeralContainers=debuggers)).until(600)
    assert life.phase == "Running"
    states = {status["name"]: [*status["state"]] for status in life.pod["status"]["ephemeralContainerStatuses"]}
    assert states == {"shell": ["running"], "look": ["terminated"]}


@pytest.mark.parametrize(
    ("probes", "script", "after", "started", "ready", "restarts"),
    [
        ({"startupProbe": {}}, {"started_after": 5.0}, 4, False, False, 0),
        ({"startupProbe": {}}, {"started_after": 5.0}, 5, True, True, 0),
        ({"startupProbe": {}, "readinessProbe": {}}, {"started_after": 2.0, "ready_after": 4.0}, 3, True, False, 0),
        ({"startupProbe": {}, "readinessProbe": {}}, {"started_after": 4.0, "ready_after": 2.0}, 3, False, False, 0),
        ({"startupProbe": {"failureThreshold": 2}}, {"started_after": None}, 19, False, False, 0),
        ({"startupProbe": {"failureThreshold": 2}}, {"started_after": None}, 21, False, False, 1),
        ({"livenessProbe": {"periodSeconds": 1}}, {"unhealthy_after": 5.0}, 7, True, True, 0),
        ({"livenessProbe": {"periodSeconds": 1}}, {"unhealthy_after": 5.0}, 9, True, True, 1),
        ({}, {"unhealthy_after": 5.0, "started_after": None}, 100, True, True, 0),
    ],
)
def test_probes(probes: Object, script: Object, after: float, started: bool, ready: bool, restarts: int) -> None:
    life = Life(pod(containers=[{"name": "c", "image": "x", **probes}]), script).until(after)
    [status] = life.pod["status"]["containerStatuses"]
    assert (status["started"], status["ready"], status["restartCount"]) == (started, ready, restarts)
