"""Tests the life of a pod on a simulated node, as a story: after so many seconds, in this phase, with these containers."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.component_helpers.streaming import LogOptions
from fakeapiserver.nodes.behaviour import Behaviours, Failing, Hook
from fakeapiserver.nodes.logs import Reader, run_of
from fakeapiserver.nodes.pod_lifecycle.context import PodLocation, PodState, StatusUpdate
from fakeapiserver.nodes.pod_lifecycle.events import changes
from fakeapiserver.nodes.pod_lifecycle.lifecycle import next_status

START = 1_700_000_000.0
Object = dict[str, Any]


def pod(**spec: Any) -> Object:
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}], "restartPolicy": "Always", **spec},
    }


class Life:
    """A pod whose kubelet looks at it whenever it has asked to."""

    def __init__(self, obj: Object, *scripts: Object) -> None:
        self.pod, self.now = obj, START
        self.behaviours, self.memory = Behaviours(), PodState(START)
        self.events: list[str] = []
        self.room: tuple[str, str] | None = None
        for script in scripts:
            self.behaviours.add(**script)

    def look(self) -> StatusUpdate:
        """Returns the pod's next status, as a kubelet computes it now."""
        found = next_status(
            self.pod,
            PodLocation(("172.18.0.3",), ("100.64.0.1",), lambda pod: self.room),
            lambda container, main: self.behaviours.of(self.pod, container, main=main),
            self.now,
            self.memory,
        )
        told = [*found.events, *changes(self.pod, found.status or {})]
        self.events += [f"{self.now - START:g} {one.reason}: {one.message}" for one in told]
        return found

    def until(self, seconds: float) -> "Life":
        """Goes on until so many seconds after the start."""
        for _ in range(1000):
            found = self.look()
            if found.status is not None:
                self.pod = {**self.pod, "status": {**self.pod.get("status", {}), **found.status}}
                continue
            if found.after is None or self.now + found.after > START + seconds:
                self.now = START + seconds
                return self
            self.now += found.after
        raise AssertionError("it never comes to rest")

    def deleted(self, grace: int) -> "Life":
        """Deletes the pod now, with this grace period."""
        told = {"deletionTimestamp": rfc3339(self.now + grace), "deletionGracePeriodSeconds": grace}
        self.pod = {**self.pod, "metadata": {**self.pod["metadata"], **told}}
        return self

    @property
    def finished(self) -> dict[str, str]:
        """Containers that have ended: when, and with which code."""
        statuses = (*self.pod["status"].get("initContainerStatuses", ()), *self.pod["status"]["containerStatuses"])
        ended = {status["name"]: status["state"].get("terminated") for status in statuses}
        return {
            name: f"{(seconds_of(found['finishedAt']) or 0) - START:g}: {found['exitCode']}"
            for name, found in ended.items()
            if found
        }

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
            ["s terminated (Error 143)", "c terminated (Completed 0)"],
            id="and ends with it",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 30}, [], 30, "Failed", ["c terminated (Error 143)"], id="it may not take longer"
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
        ({}, {"ready_after": 5.0}, 4, "False ContainersNotReady containers with unready status: [c]"),
        ({}, {"ready_after": 5.0}, 5, "True"),
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
        ({}, 30, None, "Failed", 143),
        ({"stop_exit_code": 0}, 30, None, "Succeeded", 0),
        ({"stops_after": 5.0}, 30, 5.0, "Running", None),
        ({"stops_after": 60.0}, 30, 30.0, "Running", None),
        ({"stops_after": 60.0}, 0, 2.0, "Running", None),
    ],
)
def test_it_stops_in_its_time(
    script: Object, grace: int, waits: float | None, phase: str, exit_code: int | None
) -> None:
    life = Life(pod(), script).until(0).deleted(grace)
    found = life.look()
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
def test_a_script_applies_to_the_objects_it_names(rule: Object, matches: bool) -> None:
    behaviours = Behaviours()
    behaviours.add(**rule, runs_for=7.0)
    assert (behaviours.of(pod(), "c", main=True).runs_for == 7.0) == matches


def test_an_invalid_script_is_rejected() -> None:
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


def test_a_command_that_ends_at_once_is_never_seen_running() -> None:
    containers = [{"name": "c", "image": "busybox", "command": ["sh", "-c", "exit 3"]}]
    life = Life(pod(containers=containers, restartPolicy="Never"))
    found = life.look().status
    assert found is not None
    assert (found["phase"], found["containerStatuses"][0]["state"]["terminated"]["exitCode"]) == ("Failed", 3)
    assert "0 Started: Container started" in life.events


@pytest.mark.parametrize(
    ("image", "reason", "tries"),
    [("foo:non-existent", "ImagePullBackOff", [0, 10, 30, 70, 150, 310, 610]), ("a:x y", "InvalidImageName", [])],
)
def test_an_image_that_cannot_exist_is_tried_as_a_kubelet_does(image: str, reason: str, tries: list[int]) -> None:
    life = Life(pod(containers=[{"name": "c", "image": image}])).until(800)
    assert life.containers == [f"c waiting ({reason})"]
    assert [int(event.split()[0]) for event in life.events if "Error: ErrImagePull" in event] == tries
    assert Life(pod(containers=[{"name": "c", "image": image}]), {"pull_error": ""}).until(0).phase == "Running"


SHORT = {"runs_for": 0.7, "log": [(0.0, "a"), (0.3, "b"), (0.7, "c"), (0.8, "too late")]}


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.5, 0.95])
@pytest.mark.parametrize("policy", ["Never", "Always"])
def test_a_container_of_less_than_a_second_runs_its_time_and_keeps_its_lines(fraction: float, policy: str) -> None:
    life = Life(pod(restartPolicy=policy), SHORT)
    life.now = START + fraction
    life.until(fraction + 0.6)
    assert life.containers == ["c running ready"]
    life.until(fraction + 0.8)
    run = run_of(life.pod, "c", life.memory.spans, previous=policy == "Always")
    behaviour = life.behaviours.of(life.pod, "c", main=True)
    assert Reader(behaviour.log, run, LogOptions()).first(life.now) == b"a\nb\nc\n"


def test_a_new_kubelet_knows_whole_seconds_only_and_keeps_the_last_lines() -> None:
    life = Life(pod(restartPolicy="Never"), SHORT)
    life.now = START + 0.5
    life.until(2)
    run = run_of(life.pod, "c", {}, previous=False)
    assert Reader(SHORT["log"], run, LogOptions()).first(life.now).startswith(b"a\nb\nc\n")


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
        ({"livenessProbe": {"periodSeconds": 1}}, {"unhealthy_after": 5.0}, 6, True, True, 0),
        ({"livenessProbe": {"periodSeconds": 1}}, {"unhealthy_after": 5.0}, 9, True, True, 1),
        ({}, {"unhealthy_after": 5.0, "started_after": None}, 100, True, True, 0),
    ],
)
def test_probes(probes: Object, script: Object, after: float, started: bool, ready: bool, restarts: int) -> None:
    life = Life(pod(containers=[{"name": "c", "image": "x", **probes}]), script).until(after)
    [status] = life.pod["status"]["containerStatuses"]
    assert (status["started"], status["ready"], status["restartCount"]) == (started, ready, restarts)


def container(name: str = "c", **spec: Any) -> Object:
    return {"name": name, "image": "x", **spec}


SLEEPS = {"lifecycle": {"preStop": {"sleep": {"seconds": 7}}}}
EXECS = {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "sleep 3; exit 1"]}}}}
SIDECARS = {
    "initContainers": [container(name, restartPolicy="Always") for name in ("first", "second")],
    "containers": [container()],
}


@pytest.mark.parametrize(
    ("spec", "scripts", "grace", "finished", "events"),
    [
        pytest.param({}, [], 30, {"c": "5: 143"}, ["5 Killing: Stopping container c"], id="SIGTERM ends it"),
        pytest.param({}, [{"stops_after": 99.0}], 9, {"c": "14: 137"}, None, id="it doesn't listen"),
        pytest.param({"containers": [container(**SLEEPS)]}, [], 30, {"c": "12: 143"}, None, id="it sleeps before"),
        pytest.param(
            {"containers": [container(**SLEEPS)]},
            [{"stops_after": 99.0}],
            30,
            {"c": "35: 137"},
            None,
            id="within the grace period",
        ),
        pytest.param(
            {"containers": [container(**SLEEPS)]},
            [{"stops_after": 99.0}],
            4,
            {"c": "11: 137"},
            None,
            id="of two at least",
        ),
        pytest.param(
            {"containers": [container(**EXECS)]},
            [],
            30,
            {"c": "8: 143"},
            ["5 Killing: Stopping container c", "8 FailedPreStopHook: PreStopHook failed"],
            id="its command fails",
        ),
        pytest.param(
            {"containers": [container(lifecycle={"preStop": {"httpGet": {"port": 80}}})]},
            [{"pre_stop": Hook(2.0, "connection refused")}],
            30,
            {"c": "7: 143"},
            ["5 Killing: Stopping container c", "7 FailedPreStopHook: PreStopHook failed"],
            id="as it is scripted",
        ),
        pytest.param(
            SIDECARS,
            [{"stops_after": 4.0}],
            30,
            {"c": "9: 143", "second": "13: 143", "first": "17: 143"},
            None,
            id="sidecars in reverse",
        ),
        pytest.param(
            SIDECARS,
            [{"stops_after": 4.0}],
            5,
            {"c": "9: 143", "second": "11: 137", "first": "12: 137"},
            None,
            id="as far as there is time",
        ),
        pytest.param(
            {"containers": [container(), container("b")]},
            [{"stops_after": 20.0}, {"container": "b", "runs_for": 9.0, "exit_codes": (3,)}],
            30,
            {"c": "25: 143", "b": "9: 3"},
            None,
            id="what ends by itself meanwhile",
        ),
    ],
)
def test_it_comes_to_its_end(
    spec: Object, scripts: list[Object], grace: int, finished: dict[str, str], events: list[str] | None
) -> None:
    life = Life(pod(**spec), *scripts).until(5)
    life.events.clear()
    life.deleted(grace).until(60)
    assert life.finished == finished
    assert events is None or life.events == events


def test_sidecars_end_when_the_others_have() -> None:
    life = Life(pod(**SIDECARS, restartPolicy="Never"), {"stops_after": 4.0}, {"container": "c", **ENDS}).until(12)
    assert (life.phase, life.finished) == ("Running", {"c": "5: 0"})
    assert life.until(13).phase == "Succeeded"
    assert life.finished == {"c": "5: 0", "second": "9: 143", "first": "13: 143"}


def test_a_deadline_leaves_time_to_end() -> None:
    life = Life(pod(activeDeadlineSeconds=30), {"stops_after": 5.0}).until(34)
    assert life.phase == "Running"
    assert life.until(35).phase == "Failed"
    assert life.pod["status"]["reason"] == "DeadlineExceeded"
    assert "30 DeadlineExceeded: Pod was active on the node longer than the specified deadline" in life.events


@pytest.mark.parametrize(
    ("spec", "script", "after", "containers", "restarts_at"),
    [
        ({}, {"runs_for": 1.0, "exit_codes": (1,)}, 700, None, [1, 12, 33, 74, 155, 316, 617]),
        ({"restartPolicy": "Never"}, FAILS, 6, ["c terminated (Error 1)"], []),
        ({"restartPolicy": "Never", "containers": [container(restartPolicy="OnFailure")]}, FAILS, 6, None, [5]),
        (
            {
                "restartPolicy": "Never",
                "containers": [
                    container(
                        restartPolicy="Never",
                        restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
                    )
                ],
            },
            {"runs_for": 5.0, "exit_codes": (42, 1)},
            11,
            ["c terminated (Error 1) x1"],
            [5],
        ),
    ],
)
def test_it_begins_again(
    spec: Object, script: Object, after: float, containers: list[str] | None, restarts_at: list[float]
) -> None:
    life = Life(pod(**spec), script).until(after)
    starts = [float(event.split()[0]) for event in life.events if "Started" in event]
    assert starts[1:] == restarts_at
    assert containers is None or life.containers == containers


def test_who_has_run_for_long_is_forgiven() -> None:
    life = Life(pod(), {"runs_for": 700.0, "exit_codes": (1,)}).until(3000)
    assert [event for event in life.events if "BackOff" in event] == []
    life.behaviours.add(runs_for=1.0)
    life.until(3600)
    assert [event.split(":")[0] for event in life.events if "BackOff" in event][:2] == ["3000 BackOff", "3011 BackOff"]
    assert [event.split()[0] for event in life.events if "Started" in event][5:7] == ["3010", "3031"]


def test_all_begin_again_when_a_rule_wants_that() -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [9]}}]
    containers = [container("c", restartPolicy="Never", restartPolicyRules=rules), container("d")]
    life = Life(
        pod(containers=containers, initContainers=[container("i")]),
        {"container": "c", "runs_for": 5.0, "exit_codes": (9, 0)},
    )
    assert life.until(4).condition("AllContainersRestarting") == "False"
    life.until(5)
    assert life.containers == [
        "i terminated (Completed 0) x1 ready",
        "c running x1 ready",
        "d running x1 ready",
    ]
    assert life.condition("Initialized") == "True"
    [_, d] = life.pod["status"]["containerStatuses"]
    assert d["lastState"]["terminated"]["reason"] == "RestartingAllContainers"


def test_a_failed_start_hook_ends_the_container() -> None:
    hooked = container(lifecycle={"postStart": {"exec": {"command": ["/warm-up"]}}})
    life = Life(pod(containers=[hooked]), {"post_start": Hook(2.0, "warm-up failed")}).until(1)
    assert life.containers == ["c waiting (ContainerCreating)"]
    life.until(10)
    assert life.containers == ["c waiting (CrashLoopBackOff) x1"]
    begun = ["Pulled", "Created", "Started", "FailedPostStartHook", "Killing"]
    told = [*(f"{at} {reason}" for at in (2, 4) for reason in begun), "4 BackOff"]
    assert [event.split(":")[0] for event in life.events] == told
    assert life.pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 143


def test_an_image_is_pulled_again_and_again() -> None:
    life = Life(pod(), {"pull_error": "no such host"}).until(400)
    pulls = [int(event.split()[0]) for event in life.events if "Pulling" in event]
    assert pulls == [0, 10, 30, 70, 150, 310]
    [status] = life.pod["status"]["containerStatuses"]
    assert status["state"]["waiting"] == {
        "reason": "ImagePullBackOff",
        "message": 'Back-off pulling image "nginx": ErrImagePull: no such host',
    }
    never = Life(pod(containers=[container(imagePullPolicy="Never")]), {"pull_error": "absent"}).until(0)
    assert never.containers == ["c waiting (ErrImageNeverPull)"]


@pytest.mark.parametrize(
    ("probe", "failing", "after", "events", "ready", "restarts"),
    [
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 80}}},
            {"liveness": Failing(after=15.0)},
            45,
            [
                "20 Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500",
                "30 Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500",
                "40 Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500",
                "40 Killing: Container c failed liveness probe, will be restarted",
            ],
            True,
            1,
            id="liveness",
        ),
        pytest.param(
            {"livenessProbe": {"exec": {"command": ["check"]}, "periodSeconds": 5}},
            {"liveness": Failing(times=2, message="not yet")},
            60,
            [
                "5 Unhealthy: Liveness probe failed: not yet",
                "10 Unhealthy: Liveness probe failed: not yet",
            ],
            True,
            0,
            id="it comes round",
        ),
        pytest.param(
            {
                "startupProbe": {"tcpSocket": {"port": "web"}, "failureThreshold": 2},
                "ports": [{"name": "web", "containerPort": 80}],
            },
            {"startup": Failing()},
            21,
            [
                "10 Unhealthy: Startup probe failed: dial tcp 100.64.0.1:80: connect: connection refused",
                "20 Unhealthy: Startup probe failed: dial tcp 100.64.0.1:80: connect: connection refused",
                "20 Killing: Container c failed startup probe, will be restarted",
            ],
            False,
            1,
            id="startup",
        ),
        pytest.param(
            {"readinessProbe": {"grpc": {"port": 80}, "failureThreshold": 1, "successThreshold": 2}},
            {"readiness": Failing(after=5.0, until=25.0)},
            39,
            [
                '10 Unhealthy: Readiness probe failed: service unhealthy (responded with "NOT_SERVING")',
                '20 Unhealthy: Readiness probe failed: service unhealthy (responded with "NOT_SERVING")',
            ],
            False,
            0,
            id="readiness",
        ),
        pytest.param(
            {"readinessProbe": {"grpc": {"port": 80}, "failureThreshold": 1, "successThreshold": 2}},
            {"readiness": Failing(after=5.0, until=25.0)},
            40,
            None,
            True,
            0,
            id="ready again",
        ),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 80}, "terminationGracePeriodSeconds": 6}},
            {"liveness": Failing()},
            35,
            None,
            True,
            0,
            id="a probe's own grace period",
        ),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 80}, "terminationGracePeriodSeconds": 6}},
            {"liveness": Failing()},
            36,
            None,
            True,
            1,
            id="which is over",
        ),
    ],
)
def test_probes_fail_as_they_are_scripted(
    probe: Object, failing: Object, after: float, events: list[str] | None, ready: bool, restarts: int
) -> None:
    life = Life(
        pod(containers=[container(**probe)]),
        {"probes": failing, "stops_after": 99.0 if "grace" in str(probe).lower() else 0.0},
    )
    life.until(after)
    [status] = life.pod["status"]["containerStatuses"]
    assert (status["ready"], status["restartCount"]) == (ready, restarts)
    told = [event for event in life.events if "Unhealthy" in event or "Killing" in event]
    assert events is None or told == events


def resized(life: Life, **requests: str) -> Life:
    """Requests other resources for the container now."""
    [spec] = life.pod["spec"]["containers"]
    generation = life.pod["metadata"]["generation"] + 1
    life.pod = {
        **life.pod,
        "metadata": {**life.pod["metadata"], "generation": generation},
        "spec": {**life.pod["spec"], "containers": [{**spec, "resources": {"requests": requests}}]},
    }
    life.events.clear()
    return life


def resources(life: Life) -> tuple[str, str]:
    """Returns the container's allocated resources and its actual ones."""
    [status] = life.pod["status"]["containerStatuses"]
    return status["allocatedResources"]["cpu"], status["resources"]["requests"]["cpu"]


SMALL = container(resources={"requests": {"cpu": "1"}})


def test_a_resize_is_given_and_then_shows() -> None:
    life = resized(Life(pod(containers=[SMALL]), {"resizes_after": 5.0}).until(1), cpu="2").until(5)
    assert resources(life) == ("2", "1")
    [condition] = [row for row in life.pod["status"]["conditions"] if row["type"] == "PodResizeInProgress"]
    assert (condition["status"], condition["observedGeneration"]) == ("True", 2)
    life.until(6)
    assert resources(life) == ("2", "2")
    assert "PodResizeInProgress" not in [row["type"] for row in life.pod["status"]["conditions"]]
    shown = '{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}],"generation":2}'
    assert life.events == [
        f"1 ResizeStarted: Pod resize started: {shown}",
        f"6 ResizeCompleted: Pod resize completed: {shown}",
    ]


def test_a_resize_waits_for_room() -> None:
    life = Life(pod(containers=[SMALL])).until(1)
    life.room = ("OutOfcpu", "Node didn't have enough resource: cpu, requested: 2000, used: 0, capacity: 1000")
    resized(life, cpu="2").until(10)
    assert resources(life) == ("1", "1")
    assert life.condition("PodResizePending") == f"True Deferred {life.room[1]}"
    assert [event.split(":")[0] for event in life.events] == ["1 ResizeDeferred"]
    life.room = None
    assert resources(life.until(200)) == ("2", "2")
    assert "PodResizePending" not in [row["type"] for row in life.pod["status"]["conditions"]]


def test_a_resize_may_fail_or_ask_too_much() -> None:
    life = resized(Life(pod(containers=[SMALL]), {"resize_error": "no"}).until(1), cpu="2").until(60)
    assert (resources(life), life.condition("PodResizeInProgress")) == (("2", "1"), "True Error no")
    life = resized(Life(pod(containers=[SMALL]), {"resize_infeasible": "static"}).until(1), cpu="2").until(60)
    assert (resources(life), life.condition("PodResizePending")) == (("1", "1"), "True Infeasible static")


def test_a_resize_that_wants_it_begins_the_container_again() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    life = resized(Life(pod(containers=[{**SMALL, "resizePolicy": policy}])).until(1), cpu="2").until(2)
    assert (resources(life), life.containers) == (("2", "2"), ["c running x1 ready"])
    assert "1 Killing: Container c resize requires restart" in life.events
