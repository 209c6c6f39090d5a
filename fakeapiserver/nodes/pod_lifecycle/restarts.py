"""Whether a container begins again, and how long it waits for that. Pure.

Upstream: pkg/api/v1/pod/util.go (ContainerShouldRestart), k8s.io/client-go/util/flowcontrol/backoff.go.
"""

from typing import Final

from fakeapiserver.apimachinery.meta import Object

RESTART_ALL: Final = "RestartAllContainers"
FIRST_SECONDS: Final = 10.0
MOST_SECONDS: Final = 300.0
# Who ran so long is forgiven its restarts.
FORGIVEN_SECONDS: Final = 2 * MOST_SECONDS


def rule_of(spec: Object, exit_code: int) -> str:
    """The action of the first rule that matches, "" for none."""
    for rule in spec.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        if (exit_code in (codes.get("values") or ())) == (codes.get("operator") == "In"):
            return str(rule["action"])
    return ""


def restarts(spec: Object, pod_policy: str, exit_code: int, *, is_init: bool) -> bool:
    """Reports whether it begins again after it has ended so. `is_init`: it has to succeed before others begin."""
    if spec.get("restartPolicy") and rule_of(spec, exit_code):
        return True
    policy = spec.get("restartPolicy") or pod_policy
    if policy == "Always" and is_init:
        policy = "OnFailure"
    return bool(policy == "Always" or (policy == "OnFailure" and exit_code != 0))


def back_off(count: int) -> float:
    """Seconds before something that has failed is tried for the `count`-th time again; 0: at once."""
    return min(FIRST_SECONDS * 2.0 ** min(count - 1, 10), MOST_SECONDS) if count > 0 else 0.0


def tries(elapsed: float) -> tuple[int, float]:
    """Returns how often something that always fails was tried within so many seconds, and when it is tried next."""
    count, at = 1, back_off(1)
    while at <= elapsed:
        if back_off(count) == MOST_SECONDS:
            more = int((elapsed - at) // MOST_SECONDS) + 1
            return count + more, at + more * MOST_SECONDS
        count += 1
        at += back_off(count)
    return count, at
