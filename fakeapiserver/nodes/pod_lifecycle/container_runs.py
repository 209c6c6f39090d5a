"""The next status of a container: it starts, runs, ends, and starts again (upstream: pkg/kubelet/kuberuntime, restarts and back-off)."""

from collections.abc import Iterator
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.nodes.behaviour import ContainerBehaviour
from fakeapiserver.nodes.commands import Process
from fakeapiserver.nodes.images import name_problem
from fakeapiserver.nodes.pod_lifecycle import resizing, restarts
from fakeapiserver.nodes.pod_lifecycle.container_status import (
    digest,
    ended_at,
    exit_code,
    is_removed,
    is_sidecar,
    new_status,
    waiting,
)
from fakeapiserver.nodes.pod_lifecycle.context import PodContext, Span
from fakeapiserver.nodes.pod_lifecycle.events import NORMAL, WARNING, PodEvent, begun, full_name
from fakeapiserver.nodes.pod_lifecycle.probing import Probes
from fakeapiserver.nodes.pod_lifecycle.termination import Ending, ending, hook_of

# Statuses have whole seconds, so what happened this long before the last look may not have been reported then.
_BLUR: Final = 1.0
# Seconds by which a sum of times may be wrong.
_NOISE: Final = 1e-5
_PULLING: Final = ("ErrImagePull", "ImagePullBackOff")


def init_containers(ctx: PodContext, base: float) -> Iterator[tuple[Object, Object]]:
    """The init containers with their next statuses. They run one after the other; the next one may start when a sidecar has
    started."""
    may_start = True
    for spec in ctx.spec.get("initContainers") or ():
        status = next_container_status(ctx, spec, base, may_start=may_start, main=is_sidecar(spec), inits=True)
        done = status.get("started", False) if is_sidecar(spec) else exit_code(status) == 0
        may_start = may_start and done
        base = max(base, ended_at(status) or base)
        yield spec, status


def next_container_status(
    ctx: PodContext, spec: Object, base: float, *, may_start: bool, main: bool, inits: bool
) -> Object:
    """A container's next status. `base`: when it could start at the earliest."""
    behaviour = ctx.behaviour_of(spec["name"], main)
    old = ctx.known.get(spec["name"]) or new_status(spec)
    state = old["state"]
    if "terminated" in state:
        return _after_end(ctx, spec, old, behaviour)
    if "running" in state:
        return _running(ctx, spec, old, behaviour)
    reason = "PodInitializing" if inits else "ContainerCreating"
    again = bool(old.get("lastState"))
    if not may_start:
        return old if again else waiting(old, reason)
    fresh = not again or is_removed(old)
    due = base + behaviour.starts_after if fresh else ctx.now + _back_off_left(ctx, old)
    if due > ctx.now:
        ctx.waits.append(due - ctx.now)
        return waiting(old, reason) if not again else old if fresh else _backing_off(ctx, spec, old)
    if behaviour.pull_error:
        return _not_pulled(ctx, spec, old, behaviour, due)
    return _begin(ctx, spec, old, behaviour, old if again else waiting(old, reason), due)


def _begin(
    ctx: PodContext, spec: Object, old: Object, behaviour: ContainerBehaviour, meanwhile: Object, due: float
) -> Object:
    """The status of a container that starts. `meanwhile`: its status while its postStart hook runs, since a container shows
    as running only after that."""
    hook = hook_of(spec, "postStart", behaviour.post_start)
    if hook is None:
        return _begun(ctx, spec, old, behaviour, ctx.now)
    failed_at = due + hook.seconds
    end = ending(spec, behaviour, failed_at, ctx.grace) if hook.error else None
    left = (failed_at if end is None else end.at) - ctx.now
    if left > 0:
        ctx.waits.append(left)
        return meanwhile
    if end is None:
        return _begun(ctx, spec, old, behaviour, ctx.now - hook.seconds)
    for event in begun(spec, ctx.path(spec)):
        ctx.happens(ctx.now, event)
    ctx.happens(ctx.now, PodEvent(WARNING, "FailedPostStartHook", "PostStartHook failed", ctx.path(spec)))
    ctx.happens(ctx.now, PodEvent(NORMAL, "Killing", "FailedPostStartHook", ctx.path(spec)))
    ctx.hook_fails(spec, end)
    was = _begun(ctx, spec, old, behaviour, due)
    return _after_end(ctx, spec, ctx.ended(was, end.exit_code), behaviour, problem=hook.error)


def _begun(ctx: PodContext, spec: Object, old: Object, behaviour: ContainerBehaviour, since: float) -> Object:
    again = bool(old.get("lastState")) and not is_removed(old)
    count = old["restartCount"] + (1 if again else 0)
    ctx.state.pulls.pop(spec["name"], None)
    ctx.state.spans[spec["name"], count] = Span(since)
    ctx.state.spans.pop((spec["name"], count - 2), None)
    status = {
        **old,
        "state": {"running": {"startedAt": rfc3339(since)}},
        "restartCount": count,
        "image": spec.get("image", ""),
        "imageID": f"{spec.get('image', '')}@sha256:{digest(spec.get('image', ''))}",
        "containerID": ctx.container_id(spec["name"], count),
    }
    status = ctx.with_resources(status, actual=True)
    if _ends_unseen(ctx, spec, behaviour):
        for event in begun(spec, ctx.path(spec)):
            ctx.happens(ctx.now, event)
        ended = ctx.ended(status, behaviour.exit_code(count), behaviour.message, reason=behaviour.reason)
        return _after_end(ctx, spec, ended, behaviour)
    if behaviour.runs_for is not None:
        ctx.waits.append(behaviour.runs_for)
    return _probed(ctx, spec, status, _probes(ctx, spec, behaviour, since))


def _ends_unseen(ctx: PodContext, spec: Object, behaviour: ContainerBehaviour) -> bool:
    """Reports whether a command ends for good at once: a kubelet, which looks once a second, never sees such a container run."""
    is_over = behaviour.runs_for == 0.0 and isinstance(behaviour.log, Process)
    return is_over and not ctx.restarts(spec, behaviour.exit_codes[0])


def _running(ctx: PodContext, spec: Object, old: Object, behaviour: ContainerBehaviour) -> Object:
    since = ctx.started(old)
    given = ctx.state.allocated.get(spec["name"], {})
    if ctx.resizes and resizing.restarts_for(spec, old.get("resources") or {}, given):
        message = f"Container {spec['name']} resize requires restart"
        ctx.happens(ctx.now, PodEvent(NORMAL, "Killing", message, ctx.path(spec)))
        return _after_end(ctx, spec, ctx.ended(old, behaviour.stop_exit_code), behaviour, again=True)
    old = ctx.with_resources(old, actual=ctx.resizes or "resources" not in old)
    probes = _probes(ctx, spec, behaviour, since)
    _unhealthy(ctx, spec, probes)
    end, restarts_ = _end_of_run(ctx, spec, old, behaviour, since, probes)
    if end is None:
        return _probed(ctx, spec, old, probes)
    if end.at > ctx.now + _NOISE:
        ctx.waits.append(end.at - ctx.now)
        return _probed(ctx, spec, old, probes)
    message, reason = ("", "") if restarts_ is not None else (behaviour.message, behaviour.reason)
    status = ctx.ended(old, end.exit_code, message, reason=reason)
    ctx.span(old).ended = end.at
    return _after_end(ctx, spec, status, behaviour, again=restarts_)


def _end_of_run(
    ctx: PodContext, spec: Object, old: Object, behaviour: ContainerBehaviour, since: float, probes: Probes
) -> tuple[Ending | None, bool | None]:
    """When the run ends, by itself or because of a probe, and in the latter case whether the container restarts, whatever its
    exit code."""
    own = None
    if behaviour.runs_for is not None:
        own = Ending(since + behaviour.runs_for, behaviour.exit_code(old["restartCount"]))
    killed = probes.killed
    if killed is None or (own is not None and own.at <= killed.at):
        return own, None
    grace = spec[f"{killed.kind}Probe"].get("terminationGracePeriodSeconds")
    end = ending(spec, behaviour, killed.at, ctx.grace if grace is None else float(grace))
    again = (spec.get("restartPolicy") or ctx.policy) != "Never"
    what = "Init container" if ctx.kinds[spec["name"]] == "initContainers" else "Container"
    then = ", will be restarted" if again and what == "Container" else ""
    message = f"{what} {spec['name']} failed {killed.kind} probe{then}"
    ctx.happens(killed.at, PodEvent(NORMAL, "Killing", message, ctx.path(spec)))
    ctx.hook_fails(spec, end)
    return (own, None) if own is not None and own.at <= end.at else (end, again)


def _probes(ctx: PodContext, spec: Object, behaviour: ContainerBehaviour, since: float) -> Probes:
    return Probes(spec, behaviour, since, next(iter(ctx.place.pod_ips), ""))


def _probed(ctx: PodContext, spec: Object, status: Object, probes: Probes) -> Object:
    """The status with `started` and `ready` as the probes say."""
    ctx.waits += [at - ctx.now for at in probes.changes_after(ctx.now)]
    for at in (probes.next_failure(ctx.now), probes.killed.at if probes.killed else None):
        if at is not None and at > ctx.now:
            ctx.waits.append(at - ctx.now)
    ready = not ctx.is_init(spec) and probes.is_ready(ctx.now)
    return {**status, "ready": ready, "started": probes.started_at <= ctx.now}


def _unhealthy(ctx: PodContext, spec: Object, probes: Probes) -> None:
    for failure in probes.failures(ctx.state.looked - _BLUR, ctx.now):
        message = f"{failure.kind.capitalize()} probe failed: {failure.message}"
        ctx.happens(failure.at, PodEvent(WARNING, "Unhealthy", message, ctx.path(spec)))


def _after_end(
    ctx: PodContext,
    spec: Object,
    status: Object,
    behaviour: ContainerBehaviour,
    *,
    again: bool | None = None,
    problem: str = "",
) -> Object:
    """The status of a container that has ended: it stays so, or restarts after its back-off. `again`: whether it restarts, if
    that is decided already. `problem`: the error of its postStart hook."""
    terminated = status["state"]["terminated"]
    if not (ctx.restarts(spec, terminated["exitCode"]) if again is None else again):
        return {**status, "ready": terminated["exitCode"] == 0 and ctx.is_init(spec)}
    if spec.get("restartPolicy") and restarts.rule_of(spec, terminated["exitCode"]) == restarts.RESTART_ALL:
        ctx.resets = True
        return status
    over = {**status, "lastState": {"terminated": terminated}}
    if (ended_at(status) or 0.0) - (seconds_of(terminated["startedAt"]) or 0.0) > restarts.FORGIVEN_SECONDS:
        ctx.state.forgiven[spec["name"]] = status["restartCount"]
    left = _back_off_left(ctx, over)
    if left > 0:
        ctx.waits.append(0.0 if problem else left)
        return waiting(over, "PostStartHookError", problem) if problem else _backing_off(ctx, spec, over)
    if behaviour.pull_error:
        return _not_pulled(ctx, spec, over, behaviour, ctx.now + left)
    return _begin(ctx, spec, over, behaviour, status, ctx.now + left)


def _backing_off(ctx: PodContext, spec: Object, status: Object) -> Object:
    seconds = int(_back_off(ctx, status))
    message = f"back-off {_go_seconds(seconds)} restarting failed container={spec['name']} pod={full_name(ctx.pod)}"
    return waiting(status, "CrashLoopBackOff", message)


def _back_off_left(ctx: PodContext, status: Object) -> float:
    ended = seconds_of(status["lastState"]["terminated"].get("finishedAt")) or 0.0
    return ended + _back_off(ctx, status) - ctx.now


def _back_off(ctx: PodContext, status: Object) -> float:
    return restarts.back_off(status["restartCount"] - ctx.state.forgiven.get(status["name"], 0))


def _not_pulled(ctx: PodContext, spec: Object, old: Object, behaviour: ContainerBehaviour, due: float) -> Object:
    """The status of a container whose image can't be pulled: ErrImagePull right after each try, and then ImagePullBackOff."""
    image, name = spec.get("image", ""), spec["name"]
    if behaviour.pull_error == name_problem(image):
        return waiting(old, "InvalidImageName", behaviour.pull_error)
    if spec.get("imagePullPolicy") == "Never":
        absent = f'Container image "{image}" is not present with pull policy of Never'
        return waiting(old, "ErrImageNeverPull", absent)
    elapsed = ctx.now - due
    pulling = (old["state"].get("waiting") or {}).get("reason") in _PULLING
    if old.get("lastState") and not pulling:
        ctx.state.pulls.pop(name, None)
    count, at = restarts.tries(elapsed)
    is_new = ctx.state.pulls.get(name, 0) < count
    if name not in ctx.state.pulls and pulling:
        is_new = False  # an earlier kubelet has reported this try
    ctx.state.pulls[name] = count
    if is_new:
        ctx.waits.append(0.0)
        return waiting(old, "ErrImagePull", behaviour.pull_error)
    ctx.waits.append(due + at - ctx.now)
    message = f'Back-off pulling image "{image}": ErrImagePull: {behaviour.pull_error}'
    return waiting(old, "ImagePullBackOff", message)


def _go_seconds(seconds: int) -> str:
    return f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"
