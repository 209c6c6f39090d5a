"""A PodGroup is made from a template that its Workload has.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/podgroup/admission.go.
"""

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource


class PodGroupWorkloadExists(Handler):
    operations = frozenset({"CREATE"})
    resources = frozenset({GroupResource("scheduling.k8s.io", "podgroups")})
    feature_gate = "GenericWorkload"

    async def validate(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        ref = (spec.get("podGroupTemplateRef") or {}).get("workload")
        if ref is None:
            return
        name, template = ref.get("workloadName") or "", ref.get("podGroupTemplateName") or ""
        workload = self.initializer.getter.get("workloads.scheduling.k8s.io", attributes.namespace, name)
        quoted = go_quote(name)
        if workload is None:
            raise forbidden(attributes, f"PodGroup rejected: Workload {quoted} not found")
        if workload["metadata"].get("deletionTimestamp"):
            raise forbidden(attributes, f"PodGroup rejected: Workload {quoted} is being deleted")
        templates = workload["spec"].get("podGroupTemplates") or ()
        if template not in (known["name"] for known in templates):
            missing = f"PodGroupTemplate {go_quote(template)} not found in Workload {quoted}"
            raise forbidden(attributes, f"PodGroup rejected: {missing}")
