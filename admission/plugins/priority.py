"""The priority of a pod, or of a group of pods, comes from its PriorityClass.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/priority/admission.go.
"""

from typing import Final

from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object

# Groups of pods -> what messages call them, and the gate with which they have priorities.
_GROUPS: Final = {
    GroupResource("scheduling.k8s.io", "podgroups"): ("pod group", "WorkloadAwarePreemption"),
    GroupResource("scheduling.k8s.io", "compositepodgroups"): ("composite pod group", "CompositePodGroup"),
}
_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
# What a pod gets when it names no class and no class is the global default.
_NO_CLASS: Final[Object] = {"metadata": {"name": ""}, "value": 0, "preemptionPolicy": "PreemptLowerPriority"}


class Priority(Handler):
    resources = frozenset({PODS, *_GROUPS, GroupResource("scheduling.k8s.io", "priorityclasses")})

    def __init__(self, initializer: Initializer) -> None:
        super().__init__(initializer)
        # All classes when they were last looked at, and which of them is the default.
        self._known: tuple[list[Object] | None, Object | None] = None, None

    async def admit(self, attributes: Attributes) -> None:
        if (group := _GROUPS.get(attributes.resource.group_resource)) is not None:
            name, gate = group
            if attributes.operation == "CREATE" and self.initializer.features.enabled(gate):
                self._set_group(attributes, (attributes.object or {})["spec"], name)
            return
        if attributes.resource.group_resource != PODS:
            return
        spec = (attributes.object or {}).setdefault("spec", {})
        if attributes.operation == "UPDATE":
            _keep(spec, (attributes.old_object or {}).get("spec") or {})
        else:
            self._set(attributes, spec)

    async def validate(self, attributes: Attributes) -> None:
        new = attributes.object or {}
        if attributes.resource.group_resource in (PODS, *_GROUPS) or not new.get("globalDefault"):
            return
        default = self._default()
        if default is None:
            return
        name = default["metadata"]["name"]
        if attributes.operation == "CREATE" or name != new["metadata"].get("name"):
            raise forbidden(
                attributes, f"PriorityClass {name} is already marked as default. Only one default can exist"
            )

    def _set(self, attributes: Attributes, spec: Object) -> None:
        priority_class = self._class_of(attributes, spec.get("priorityClassName") or "")
        name, value, policy = (
            priority_class["metadata"]["name"],
            priority_class.get("value", 0),
            priority_class.get("preemptionPolicy"),
        )
        given, given_policy = spec.get("priority"), spec.get("preemptionPolicy")
        computed = "must not be provided in pod spec; priority admission controller computed"
        if given is not None and given != value:
            raise forbidden(
                attributes,
                f"the integer value of priority ({given}) {computed} {value} from the given PriorityClass name",
            )
        if policy and given_policy is not None and given_policy != policy:
            start = f"the string value of PreemptionPolicy ({given_policy})"
            raise forbidden(attributes, f"{start} {computed} {policy} from the given PriorityClass name")
        spec["priority"] = value
        if name:
            spec["priorityClassName"] = name
        if policy:
            spec["preemptionPolicy"] = policy

    def _set_group(self, attributes: Attributes, spec: Object, kind: str) -> None:
        """`kind` is what messages call the group."""
        priority_class = self._class_of(attributes, spec.get("priorityClassName") or "")
        name, value, given = priority_class["metadata"]["name"], priority_class.get("value", 0), spec.get("priority")
        if given is not None and given != value:
            computed = f"must match the priority computed ({value}) based on the priority class set in the spec"
            raise forbidden(attributes, f"priority set in the {kind} ({given}) {computed}")
        spec["priority"] = value
        if name:
            spec["priorityClassName"] = name
        policy = priority_class.get("preemptionPolicy")
        if policy and self.initializer.features.enabled("PodGroupPreemptionPolicy"):
            given_policy = spec.get("preemptionPolicy")
            if given_policy is not None and given_policy != policy:
                start = f"the string value of PreemptionPolicy ({given_policy}) must not be provided in {kind} spec"
                computed = f"priority admission controller computed {policy} from the given PriorityClass name"
                raise forbidden(attributes, f"{start}; {computed}")
            spec["preemptionPolicy"] = policy

    def _class_of(self, attributes: Attributes, name: str) -> Object:
        if not name:
            return self._default() or _NO_CLASS
        priority_class = self.initializer.getter.get(_CLASSES, "", name)
        if priority_class is None:
            raise forbidden(attributes, f"no PriorityClass with name {name} was found")
        return priority_class

    def _default(self) -> Object | None:
        """Returns the default class; of several (after a race) the one with the lowest value."""
        classes = self.initializer.getter.list(_CLASSES)
        if classes is not self._known[0]:
            marked = [obj for obj in classes if obj.get("globalDefault")]
            self._known = classes, min(marked, key=lambda obj: int(obj.get("value", 0)), default=None)
        return self._known[1]


def _keep(spec: Object, old: Object) -> None:
    """An update that leaves them out keeps them; validation refuses other values."""
    for key in ("priority", "preemptionPolicy"):
        if spec.get(key) is None and old.get(key) is not None:
            spec[key] = old[key]
