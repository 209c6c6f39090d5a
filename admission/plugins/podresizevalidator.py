"""A pod is resized within what its node has, and only where nodes can do it.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/podresize/admission.go.
"""

from math import ceil

from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.quantity import ZERO
from fakeapiserver.apis.pod_resources import charged_resources, resource_list


class PodResizeValidator(Handler):
    operations = frozenset({"UPDATE"})
    resources = frozenset({PODS})
    subresources = True

    async def validate(self, attributes: Attributes) -> None:
        pod, old = attributes.object or {}, attributes.old_object or {}
        name = pod["spec"].get("nodeName")
        if attributes.subresource != "resize" or not name or pod["spec"] == old["spec"]:
            return
        node = self.initializer.getter.get("nodes", "", name)
        if node is None:
            raise forbidden(attributes, f"node {go_quote(name)} not found")
        system = (metadata(node).get("labels") or {}).get("kubernetes.io/os", "linux")
        if system != "linux":
            told = f"node {go_quote(name)} is {go_quote(system)}"
            raise _refusal(attributes, f"pod resize is only supported on linux nodes, {told}", "UnsupportedPlatform")
        if excess := _excess(pod["spec"], node):
            why = f"node didn't have enough allocatable resources: {'; '.join(excess)}"
            raise _refusal(attributes, why, "NodeCapacity")


def _excess(spec: Object, node: Object) -> list[str]:
    requests = charged_resources({"spec": spec}, "requests")
    allocatable = resource_list((node.get("status") or {}).get("allocatable"))
    exceeding = []
    for name, per_unit in (("cpu", 1000), ("memory", 1)):
        wanted, there = requests.get(name, ZERO), allocatable.get(name, ZERO)
        if wanted > there:
            shown = (ceil(quantity.amount * per_unit) for quantity in (wanted, there))
            exceeding.append("{}, requested: {}, allocatable: {}".format(name, *shown))
    return exceeding


def _refusal(attributes: Attributes, reason: str, cause: str) -> StatusError:
    error = forbidden(attributes, reason)
    error.status["details"]["causes"] = [{"reason": cause}]
    return error
