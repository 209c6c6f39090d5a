"""The declared rules of workloads and of groups of pods, since 1.37.

Upstream: pkg/apis/scheduling/{v1alpha3,v1beta1}/zz_generated.validations.go.
"""

from typing import Final

from fakeapiserver.apimachinery import names
from fakeapiserver.registry.declared.rules import long_name, short_name
from fakeapiserver.registry.declared.types import (
    Field,
    Fields,
    Rule,
    between,
    immutable,
    most_items,
    needs_gate,
    never,
    one_of,
    required,
    same_items,
    text,
    union,
    unique_names,
)

_HIGHEST: Final = 1_000_000_000
_MAX_CLAIMS: Final = 4
_MAX_TEMPLATES: Final = 8
_MAX_TOPOLOGY: Final = 1
_POLICIES: Final = ("Never", "PreemptLowerPriority")

_NO_COMPOSITES: Final = needs_gate("CompositePodGroup")
_NO_TOPOLOGY: Final = needs_gate("TopologyAwareWorkloadScheduling")
_IS_REQUIRED_LONG: Final = Field(stops=[required], checks=[text(long_name)])
_IS_REQUIRED_SHORT: Final = Field(stops=[required], checks=[text(short_name)])
_SEGMENT: Final = Field(stops=[required], checks=[text(names.path_segment_name)])


def _scheduling(minimum: str, *policy_stops: Rule) -> Field:
    """A policy, whose `minimum` is how many pods or groups are scheduled together."""
    count = Field(stops=[required], checks=[between(1, None)])
    return Field(
        stops=policy_stops,
        checks=[union("basic", "gang")],
        fields={
            "basic": Field(stops=[immutable]),
            "gang": Field(stops=[never("set", "cleared")], fields={minimum: count}),
        },
        is_always_there=True,
    )


def constraints(*stops: Rule) -> Field:
    key = Field(stops=[required], checks=[text(names.is_qualified_name)])
    topology = Field(stops=[most_items(_MAX_TOPOLOGY)], fields={"key": key}, is_list=True)
    return Field(stops=[*stops, immutable], fields={"topology": topology})


def disruption(*stops: Rule) -> Field:
    return Field(stops=[immutable, *stops], checks=[union("single", "all")])


def _templates(fields: Fields, *stops: Rule) -> Field:
    return Field(
        stops=[*stops, most_items(_MAX_TEMPLATES), same_items],
        checks=[unique_names(fields)],
        fields=fields,
        is_list=True,
    )


_CLAIM_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")
_CLAIM: Final[Fields] = {
    "name": _IS_REQUIRED_SHORT,
    **{name: Field(checks=[text(long_name)], is_pointer=True) for name in _CLAIM_SOURCES},
}
CLAIMS: Final = Field(
    stops=[immutable, most_items(_MAX_CLAIMS)],
    checks=[unique_names(_CLAIM)],
    item_checks=[union(*_CLAIM_SOURCES)],
    fields=_CLAIM,
    is_list=True,
)
_CLAIM_STATUS: Final[Fields] = {
    "name": Field(),
    "resourceClaimName": Field(checks=[text(long_name)], is_pointer=True),
}
_PRIORITY: Final[Fields] = {
    "priorityClassName": Field(stops=[immutable], checks=[text(long_name)]),
    "priority": Field(stops=[immutable], checks=[between(None, _HIGHEST)], is_pointer=True),
    "preemptionPolicy": Field(
        stops=[needs_gate("PodGroupPreemptionPolicy"), immutable], checks=[one_of(*_POLICIES)], is_pointer=True
    ),
}
_WORKLOAD: Final[Fields] = {"workloadName": _IS_REQUIRED_LONG, "templateName": _IS_REQUIRED_SHORT}
_PARENT: Final = "parentCompositePodGroupName"

POD_GROUP: Final[Fields] = {
    "spec": Field(
        fields={
            _PARENT: Field(stops=[_NO_COMPOSITES, immutable], checks=[text(long_name)], is_pointer=True),
            "workloadRef": Field(stops=[immutable], fields=_WORKLOAD),
            "schedulingPolicy": _scheduling("minCount"),
            "schedulingConstraints": constraints(_NO_TOPOLOGY),
            "resourceClaims": CLAIMS,
            "disruptionMode": disruption(required),
            **_PRIORITY,
        },
        is_always_there=True,
    ),
    "status": Field(
        fields={
            "resourceClaimStatuses": Field(
                stops=[most_items(_MAX_CLAIMS)],
                checks=[unique_names(_CLAIM_STATUS)],
                fields=_CLAIM_STATUS,
                is_list=True,
            )
        },
        is_always_there=True,
    ),
}
COMPOSITE_POD_GROUP: Final[Fields] = {
    "spec": Field(
        fields={
            _PARENT: Field(stops=[immutable], checks=[text(long_name)], is_pointer=True),
            "workloadRef": Field(stops=[immutable, required], fields=_WORKLOAD),
            "schedulingPolicy": _scheduling("minGroupCount", immutable),
            "schedulingConstraints": constraints(),
            "disruptionMode": disruption(required),
            **_PRIORITY,
        },
        is_always_there=True,
    ),
}

_TEMPLATE: Final[Fields] = {
    "name": _IS_REQUIRED_SHORT,
    "schedulingPolicy": _scheduling("minCount"),
    "schedulingConstraints": constraints(_NO_TOPOLOGY),
    "resourceClaims": CLAIMS,
    "disruptionMode": disruption(),
    **_PRIORITY,
}
_COMPOSITE_TEMPLATE: Final[dict[str, Field]] = {
    "name": _IS_REQUIRED_SHORT,
    "schedulingPolicy": _scheduling("minGroupCount"),
    "schedulingConstraints": constraints(),
    "disruptionMode": disruption(),
    **_PRIORITY,
    "podGroupTemplates": _templates(_TEMPLATE),
}
_COMPOSITE_TEMPLATE["compositePodGroupTemplates"] = _templates(_COMPOSITE_TEMPLATE)
_OWNER: Final[Fields] = {"apiGroup": Field(checks=[text(long_name)]), "kind": _SEGMENT, "name": _SEGMENT}

WORKLOAD: Final[Fields] = {
    "spec": Field(
        checks=[union("podGroupTemplates", "compositePodGroupTemplates")],
        fields={
            "controllerRef": Field(stops=[immutable], fields=_OWNER),
            "podGroupTemplates": _templates(_TEMPLATE),
            "compositePodGroupTemplates": _templates(_COMPOSITE_TEMPLATE, _NO_COMPOSITES),
        },
        is_always_there=True,
    ),
}
