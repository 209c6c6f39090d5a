"""A job whose pods are scheduled as a gang keeps its parallelism.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/job/admission.go.
"""

from collections.abc import Iterable

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata, owner_references

_GROUPS = "podgroups.scheduling.k8s.io"


class JobValidation(Handler):
    operations = frozenset({"UPDATE"})
    resources = frozenset({GroupResource("batch", "jobs")})
    # Upstream looks at WorkloadWithJob too, which depends on this one.
    feature_gate = "GenericWorkload"

    async def validate(self, attributes: Attributes) -> None:
        job, old = attributes.object or {}, attributes.old_object or {}
        if job["spec"].get("parallelism") == old["spec"].get("parallelism"):
            return
        for group in self._groups(old):
            if (group["spec"].get("schedulingPolicy") or {}).get("gang") is not None:
                name = go_quote(metadata(group)["name"])
                reason = f"cannot change parallelism for a Job referencing gang-scheduled PodGroup {name}"
                raise forbidden(attributes, reason)

    def _groups(self, job: Object) -> Iterable[Object]:
        """The one its template names, or those that it controls."""
        getter, namespace, uid = self.initializer.getter, metadata(job)["namespace"], metadata(job)["uid"]
        named = (job["spec"]["template"]["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if named is not None:
            group = getter.get(_GROUPS, namespace, named)
            return [] if group is None else [group]
        return (
            group
            for group in getter.list(_GROUPS, namespace)
            if any(owner.get("controller") and owner["uid"] == uid for owner in owner_references(group))
        )
