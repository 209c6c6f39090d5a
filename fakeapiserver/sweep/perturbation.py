"""The surprises that a legal cluster may have for an operator, as data.

    crash after create secrets shop/db-password
    refuse update deployments/status shop/web (2nd in step 3) with 409

A perturbation is bound to a write of the operator, to a step of the scenario, or to both. It has a name that is the same in every run.
"""

import json
from typing import Final, Literal

from msgspec import Struct

Kind = Literal[
    "crash", "away", "refuse", "conflict", "slow", "stale", "unobserved", "reordered", "late", "restart", "lease", "webhook",
    "clock",
]  # fmt: skip
# The order is that of reports: of several causes of a finding, the first is shown.
KINDS: Final[tuple[Kind, ...]] = (
    *("crash", "away", "refuse", "conflict", "slow", "stale", "unobserved", "reordered", "late", "restart", "lease"),
    *("webhook", "clock"),
)
# Kinds that leave the operator without a view of the present for a while.
BLINDING: Final = frozenset(("unobserved", "reordered"))
_ORDINALS: Final = ("", "", "2nd", "3rd")


class WritePoint(Struct, frozen=True, order=True):
    """A write of the operator: the `occurrence`th (from 1) of this verb to this object. `name` is empty if it is generated. `step`: the
    index of the step from whose beginning on they are counted, since chance decides how many there are in earlier ones; -1 for the whole
    scenario."""

    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    occurrence: int
    step: int = -1

    @property
    def fields(self) -> dict[str, str]:
        """The fields of faults that match such writes."""
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        found = {"verb": self.verb, "resource": resource, "namespace": self.namespace}
        if self.verb == "create" and not self.subresource:  # the path of a create has no name
            found["object"] = f"object.metadata.name == {json.dumps(self.name)}" if self.name else ""
        else:
            found["name"] = self.name
        return {field: text for field, text in found.items() if text}

    def __str__(self) -> str:
        """`update deployments.apps/status shop/web (2nd in step 3)`"""
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = "/".join(part for part in (self.namespace, self.name or "*") if part)
        ordinal = _ORDINALS[self.occurrence] if self.occurrence < len(_ORDINALS) else f"{self.occurrence}th"
        counted = " ".join(part for part in (ordinal, f"in step {self.step + 1}" if self.step >= 0 else "") if part)
        return f"{self.verb} {resource} {where}{f' ({counted})' if counted else ''}"


class Perturbation(Struct, frozen=True):
    """A surprise.

    - `crash`: the operator is killed `when` ("before" or "after") the write, and started again.
    - `away`: the operator is killed after the write, and started again when the user has done what step `until` is.
    - `refuse`: the write is answered with `status`, `when` "before" it is stored or "after"; 0: its connection is reset.
    - `conflict`: another writer changes the object right before the write arrives.
    - `slow`: the answer of the write comes when the rest of the cluster has come to rest. Without a write: those of all changes of
      `object`, which may be a pattern, of `resource` while it is being deleted.
    - `stale`: at the write, or after `step`, an API server falls behind; after step `until` the operator is restarted, and served by
      it until there is nothing more to do. Then it catches up. With a `resource` only the watch cache of that one falls behind.
    - `unobserved`: the operator never sees `states` (the first and the last, counted from `step` on) of `object`, which may be a pattern;
      `until`: the last step in which they come.
    - `reordered`: during `step` the events of `resource` come after those of all other resources.
    - `late`: every event of `resource` comes late; with a `step` only in that one.
    - `restart`: the API server restarts at the write, and forgets its history.
    - `lease`: at step `step` another candidate takes the lease.
    - `webhook`: the webhook called `object` can't be reached after what the user does in `step`, until the operator has tried.
    - `clock`: pods need a quarter of an hour to become ready, in every step; `when` "in time": only the time passes.
    """

    kind: Kind
    point: WritePoint | None = None
    when: str = ""
    status: int = 0
    step: int = -1
    until: int = -1
    resource: str = ""
    object: str = ""
    states: tuple[int, int] = (0, 0)

    @property
    def id(self) -> str:
        """The name, which `--only` takes."""
        match self.kind:
            case "crash":
                return f"crash {self.when} {self.point}"
            case "away":
                return f"killed after {self.point}, and away until step {self.until + 1}"
            case "refuse":
                answer = f"with {self.status}" if self.status else "by a reset connection"
                return f"refuse {self.point} {answer}{' once it is stored' if self.when == 'after' else ''}"
            case "conflict":
                return f"conflict at {self.point}"
            case "slow":
                return f"slow after {self.point or f'changes of {self.resource} {self.object} that is being deleted'}"
            case "stale":
                state = f"before {self.point}" if self.point is not None else f"after step {self.step + 1}"
                of = f" of {self.resource}" if self.resource else ""
                return f"restart after step {self.until + 1} with the state{of} {state}"
            case "unobserved":
                first, last = self.states
                states = f"state {first}" if first == last else f"states {first} to {last}"
                return f"{states} of {self.resource} {self.object} unseen in {self._steps}"
            case "reordered":
                return f"events of {self.resource} after all others in {self._steps}"
            case "late":
                return f"late events of {self.resource}{f' in {self._steps}' if self.step >= 0 else ''}"
            case "restart":
                return f"restart of the API server at {self.point}"
            case "lease":
                return f"lost lease in {self._steps}"
            case "webhook":
                return f"webhook {self.object} down in {self._steps}"
            case "clock":
                return "pods that are ready after 15 minutes" if not self.when else "15 minutes pass in each step"

    @property
    def _steps(self) -> str:
        return f"step {self.step + 1}" if self.step == self.until else f"steps {self.step + 1} to {self.until + 1}"
