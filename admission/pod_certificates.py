"""Requests of kubelets for certificates of pods that run on their node, from signers that volumes of the pods name.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/noderestriction/admission.go, admitPodCertificateRequest.
"""

from typing import Final

from fakeapiserver.admission.handler import forbidden
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.apimachinery.errors import StatusError, status_error
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.auth.interfaces import Attributes as Wanted
from fakeapiserver.auth.interfaces import Decision, EvaluationError

POD_CERTIFICATE_REQUESTS: Final = GroupResource("certificates.k8s.io", "podcertificaterequests")
_MIRROR: Final = "kubernetes.io/config.mirror"
_REQUEST: Final = "PodCertificateRequest"


async def check_pod_certificate_request(node: str, attributes: Attributes, initializer: Initializer) -> None:
    """Raises StatusError if the node may not make this request."""
    if not initializer.features.enabled(_REQUEST):
        raise forbidden(attributes, f"{_REQUEST} feature gate is disabled")
    if attributes.operation != "CREATE":
        raise forbidden(attributes, f"unexpected operation {attributes.operation}")
    if attributes.subresource:
        raise forbidden(attributes, f"unexpected subresource {attributes.subresource}")
    spec = (attributes.object or {})["spec"]
    _check_node(node, attributes, spec, initializer)
    pod = _checked_pod(attributes, spec, initializer)
    _check_account(attributes, spec, pod, initializer)
    if initializer.features.at_least("v1.37") and not _names_signer(pod, spec.get("signerName", "")):
        await _check_signer(attributes, spec, initializer)


def _unknown(message: str) -> StatusError:
    """An error that may be over when the server knows more: it has no reason."""
    return status_error(500, "", message)


def _found(resource: str, namespace: str, name: str, initializer: Initializer, called: str) -> Object:
    obj = initializer.getter.get(resource, namespace, name)
    if obj is None:
        kind = called.replace(" ", "")
        where = go_quote(f"{namespace}/{name}" if namespace else name)
        raise _unknown(f"while retrieving {called} {where} named in the {_REQUEST}: {kind} {go_quote(name)} not found")
    return obj


def _check_node(node: str, attributes: Attributes, spec: Object, initializer: Initializer) -> None:
    name, uid = spec.get("nodeName", ""), spec.get("nodeUID", "")
    if name != node:
        which = f"{_REQUEST}.Spec.NodeName={go_quote(name)}, which is not the requesting node {go_quote(node)}"
        raise forbidden(attributes, which)
    found = metadata(_found("nodes", "", name, initializer, "node"))["uid"]
    if found != uid:
        raise _unknown(
            f"{_of(attributes, spec)} names node UID {go_quote(uid)}, inconsistent with the running node ({go_quote(found)})"
        )


def _checked_pod(attributes: Attributes, spec: Object, initializer: Initializer) -> Object:
    name, uid = spec.get("podName", ""), spec.get("podUID", "")
    pod = _found("pods", attributes.namespace, name, initializer, "pod")
    found, place = metadata(pod)["uid"], go_quote(f"{attributes.namespace}/{name}")
    if uid != found:
        raise _unknown(
            f"{_of(attributes, spec)} contains pod UID ({go_quote(uid)}) which differs from running pod {go_quote(found)}"
        )
    if pod["spec"].get("nodeName", "") != spec.get("nodeName", ""):
        where = f"{go_quote(spec.get('nodeName', ''))} named in the {_REQUEST}"
        raise forbidden(attributes, f"pod {place} is not running on node {where}")
    if _MIRROR in (metadata(pod).get("annotations") or {}):
        raise forbidden(attributes, f"pod {place} is a mirror pod")
    return pod


def _check_account(attributes: Attributes, spec: Object, pod: Object, initializer: Initializer) -> None:
    name, uid = spec.get("serviceAccountName", ""), spec.get("serviceAccountUID", "")
    runs_as = pod["spec"].get("serviceAccountName", "")
    if name != runs_as:
        differs = f"contains serviceAccountName ({go_quote(name)}) that differs from running pod ({go_quote(runs_as)})"
        raise forbidden(attributes, f"{_of(attributes, spec)} {differs}")
    account = _found("serviceaccounts", attributes.namespace, name, initializer, "service account")
    found = metadata(account)["uid"]
    if uid != found:
        differs = f"names service account UID {go_quote(uid)}, which differs from the running service account ({go_quote(found)})"
        raise _unknown(f"{_of(attributes, spec)} {differs}")


async def _check_signer(attributes: Attributes, spec: Object, initializer: Initializer) -> None:
    """A node that the pod's volumes give no reason for the request needs a permission for it."""
    signer, place = spec.get("signerName", ""), go_quote(f"{attributes.namespace}/{spec.get('podName', '')}")
    wanted = Wanted(
        user=attributes.user,
        verb="request-serviceaccounts-podcertificate-signer",
        resource_request=True,
        api_group=attributes.resource.group,
        api_version=attributes.resource.version,
        resource=signer.replace("/", ":"),
        namespace=attributes.namespace,
        name=spec.get("serviceAccountName", ""),
    )
    decision = Decision.ALLOW
    problem = f"pod {place} does not mount a podCertificate projected volume for signer {go_quote(signer)}"
    if initializer.authorizer is not None:
        try:
            decision, _ = await initializer.authorizer.authorize(wanted)
        except EvaluationError as error:
            decision, name = error.decision, attributes.user.name
            problem = (
                f"error authorizing {name} to request podcertificaterequests for signer {go_quote(signer)}: {error}"
            )
    if decision is not Decision.ALLOW:
        raise forbidden(attributes, problem)


def _names_signer(pod: Object, signer: str) -> bool:
    """Reports whether a volume of the pod has a certificate of this signer."""
    sources = [
        source
        for volume in pod["spec"].get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
    ]
    return any((source.get("podCertificate") or {}).get("signerName") == signer for source in sources)


def _of(attributes: Attributes, spec: Object) -> str:
    return f"{_REQUEST} for pod {go_quote(attributes.namespace + '/' + spec.get('podName', ''))}"
