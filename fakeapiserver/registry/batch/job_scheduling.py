"""Validation of a job's `scheduling`, which WorkloadWithJob adds in 1.37.

Upstream: validateGangMinCount, validateJobScheduling and validateJobSchedulingUpdate of pkg/apis/batch/validation/validation.go; declared
rules: pkg/apis/batch/v1/zz_generated.validations.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.registry.declared.rules import NOTHING
from fakeapiserver.registry.declared.types import Field, Fields, between, declared_errors, needs_gate, never, union
from fakeapiserver.registry.scheduling.declared import CLAIMS, constraints, disruption

_OTHER_POLICY: Final = (
    "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be updated"
)
_ALL_OF_BASIC: Final = "the disruptionMode `all` is not supported with the Basic scheduling policy"
_NOT_ADDED: Final = never("set", "cleared")
_GANG: Final = Field(fields={"minCount": Field(checks=[between(1, None)], is_pointer=True)})
_FIELDS: Final[Fields] = {
    "scheduling": Field(
        stops=[needs_gate("WorkloadWithJob"), _NOT_ADDED],
        fields={
            "schedulingPolicy": Field(stops=[_NOT_ADDED], checks=[union("basic", "gang")], fields={"gang": _GANG}),
            "schedulingConstraints": constraints(),
            "disruptionMode": disruption(),
            "resourceClaims": CLAIMS,
        },
    )
}


def job_scheduling_errors(spec: Object, path: Path) -> ErrorList:
    """The errors in the `scheduling` of a JobSpec at `path` that no declared rule reports."""
    scheduling = spec.get("scheduling")
    if scheduling is None:
        return []
    errors: ErrorList = []
    at, policy = path.child("scheduling"), scheduling.get("schedulingPolicy")
    least, parallelism = ((policy or {}).get("gang") or {}).get("minCount"), spec.get("parallelism", 1)
    if least is not None and least > parallelism:
        detail = f"must not be greater than parallelism ({parallelism})"
        errors.append(field.invalid(at.child("schedulingPolicy", "gang", "minCount"), least, detail))
    is_basic = policy is None or policy.keys() == {"basic"}  # a job without a policy has the basic one
    if is_basic and (scheduling.get("disruptionMode") or {}).keys() == {"all"}:
        errors.append(field.invalid(at.child("disruptionMode"), "", _ALL_OF_BASIC))
    return errors


def changed_policy_errors(spec: Object, old: Object, path: Path) -> ErrorList:
    """The error for a changed JobSpec at `path` that has another scheduling policy than before."""
    policy, before = ((each.get("scheduling") or {}).get("schedulingPolicy") for each in (spec, old))
    if policy is None or before is None or (policy.get("basic") is None) == (before.get("basic") is None):
        return []
    return [field.invalid(path.child("scheduling", "schedulingPolicy"), NOTHING, _OTHER_POLICY)]


def declared_scheduling_errors(spec: Object, old: Object | None, features: FeatureGates, path: Path) -> ErrorList:
    """The errors that the declared rules report in a JobSpec at `path`; `old` is the one before an update."""
    return declared_errors(_FIELDS, spec, old, features, path)
