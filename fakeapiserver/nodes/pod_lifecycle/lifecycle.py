"""The life of a pod on a node: its next status, and when to look again. Pure.

`next_status` is the whole interface. Its parts work on a PodContext (context.py): container_runs.py lets containers start, end and
restart, pod_resize.py resizes them, pod_endings.py ends the pod, and pod_status.py makes the status of all that.

Upstream: pkg/kubelet/kubelet_pods.go, pkg/kubelet/kuberuntime.
"""

from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.nodes.pod_lifecycle import container_runs, pod_endings, pod_resize, pod_status
from fakeapiserver.nodes.pod_lifecycle.container_status import (
    are_initialized,
    ended_at,
    exit_code,
    has_failed,
    is_sidecar,
    removed,
)
from fakeapiserver.nodes.pod_lifecycle.context import BehaviourOf, PodContext, PodLocation, PodState, StatusUpdate
from fakeapiserver.nodes.pod_lifecycle.pod_conditions import TERMINAL

# Statuses have whole seconds, so what happened this long before the last look may not have been reported then.
_BLUR: Final = 1.0


def next_status(
    pod: Object, place: PodLocation, behaviour_of: BehaviourOf, now: float, state: PodState
) -> StatusUpdate:
    """The next status of a pod at `now` (seconds since the epoch).

    `behaviour_of(container, main)` says what a container does; `main` is false for init containers, which end by default."""
    return _next_with_events(PodContext(pod, place, behaviour_of, now, state))


def _next_with_events(ctx: PodContext) -> StatusUpdate:
    following = _next(ctx)
    recent = [one for one in ctx.timed_events if ctx.state.looked - _BLUR < one.at <= ctx.now]
    events = sorted((one for one in recent if one not in ctx.state.reported), key=lambda one: one.at)
    ctx.state.looked = ctx.now
    ctx.state.reported = frozenset(one for one in recent if one.at > ctx.now - _BLUR)
    later = [one.at - ctx.now for one in ctx.timed_events if one.at > ctx.now]
    after = min([*later, *([] if following.after is None else [following.after])], default=None)
    return StatusUpdate(
        following.status, None if following.gone else after, following.gone, tuple(one.event for one in events)
    )


def _next(ctx: PodContext) -> StatusUpdate:
    deleted = bool(ctx.pod["metadata"].get("deletionTimestamp"))
    if ctx.old.get("phase") in TERMINAL:
        return StatusUpdate(None, gone=deleted)
    started = ctx.old.get("startTime") or rfc3339(ctx.now)
    since = seconds_of(started) or ctx.now
    stop = pod_endings.stop_of(ctx, since)
    if stop is not None:
        return pod_endings.stopped(ctx, stop, started)
    pod_resize.resize(ctx)
    inits = [*container_runs.init_containers(ctx, since)]
    initialized = are_initialized(inits)
    failed = any(has_failed(status) and not ctx.restarts(spec, exit_code(status)) for spec, status in inits)
    base = max([since, *(ended_at(status) or 0.0 for _, status in inits)])
    mains = [
        (
            spec,
            container_runs.next_container_status(
                ctx, spec, base, may_start=initialized and not failed, main=True, inits=bool(inits)
            ),
        )
        for spec in ctx.spec["containers"]
    ]
    ctx.ephemerals = [
        # Ephemeral containers run once, whatever the pod's restart policy is.
        container_runs.next_container_status(
            ctx, {**spec, "restartPolicy": "Never"}, base, may_start=True, main=True, inits=False
        )
        for spec in ctx.spec.get("ephemeralContainers") or ()
    ]
    if ctx.resets:
        inits, mains = ([(spec, removed(status)) for spec, status in some] for some in (inits, mains))
        ctx.waits.append(0.0)
    phase = pod_status.phase_of(ctx, [(spec, status) for spec, status in inits if not is_sidecar(spec)], mains)
    if phase not in TERMINAL:
        return pod_status.pod_status_of(ctx, inits, mains, started, pod_status.phase_of(ctx, inits, mains))
    inits, left = pod_endings.without_sidecars(ctx, inits, mains)
    if left > 0:
        ctx.waits.append(left)
        phase = ctx.old.get("phase") or "Pending"
    return pod_status.pod_status_of(ctx, inits, mains, started, phase)
