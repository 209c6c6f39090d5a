"""A kubelet changes its own node, and what runs there.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/noderestriction/admission.go.
"""

from collections.abc import Iterator
from typing import Any, Final

from fakeapiserver.admission.certificate_requests import subject
from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.admission.pod_certificates import POD_CERTIFICATE_REQUESTS, check_pod_certificate_request
from fakeapiserver.apimachinery.errors import new_not_found
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata, owner_references
from fakeapiserver.apis.internal_form import claim_form
from fakeapiserver.apis.pod_references import secrets_and_config_maps
from fakeapiserver.apis.spec_difference import text_difference
from fakeapiserver.auth.interfaces import Attributes as Wanted
from fakeapiserver.auth.interfaces import Decision, EvaluationError
from fakeapiserver.auth.node_identifier import node_name

_NODES: Final = GroupResource("", "nodes")
_CLAIMS: Final = GroupResource("", "persistentvolumeclaims")
_ACCOUNTS: Final = GroupResource("", "serviceaccounts")
_LEASES: Final = GroupResource("coordination.k8s.io", "leases")
_CSI_NODES: Final = GroupResource("storage.k8s.io", "csinodes")
_SLICES: Final = GroupResource("resource.k8s.io", "resourceslices")
_REQUESTS: Final = GroupResource("certificates.k8s.io", "certificatesigningrequests")
_NODE: Final = GroupResource("", "node")
_POD: Final = GroupResource("", "pod")

_MIRROR: Final = "kubernetes.io/config.mirror"
_LEASE_NAMESPACE: Final = "kube-node-lease"
_RESTRICTED: Final = "node-restriction.kubernetes.io"
_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
_KUBELET_NAMESPACES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KUBELET_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_KUBELET_SIGNERS: Final = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
# Volumes that need something of the API, in upstream's words; all others but projected ones are harmless.
_VOLUMES: Final = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
# Drivers that stand for volumes of old kinds (k8s.io/csi-translation-lib/plugins).
_MIGRATED: Final = {
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "portworxVolume": "pxd.portworx.com",
    "vsphereVolume": "csi.vsphere.vmware.com",
}
_PROJECTED: Final = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


class NodeRestriction(Handler):
    operations = frozenset({"CREATE", "UPDATE", "DELETE"})
    resources = frozenset(
        {PODS, _NODES, _CLAIMS, _ACCOUNTS, _LEASES, _CSI_NODES, _SLICES, _REQUESTS, POD_CERTIFICATE_REQUESTS}
    )
    subresources = True

    def __init__(self, initializer: Initializer) -> None:
        super().__init__(initializer)
        self._checks = {
            PODS: self._check_pod,
            _NODES: self._check_node,
            _CLAIMS: self._check_claim,
            _LEASES: self._check_lease,
            _CSI_NODES: self._check_csi_node,
            _SLICES: self._check_slice,
            _REQUESTS: self._check_request,
        }

    async def admit(self, attributes: Attributes) -> None:
        node = node_name(attributes.user)
        if node is None:
            return
        if not node:
            raise forbidden(attributes, f"could not determine node from user {go_quote(attributes.user.name)}")
        resource = attributes.resource.group_resource
        if resource == _ACCOUNTS:
            if attributes.operation == "CREATE" and attributes.subresource == "token":
                await self._check_token(node, attributes)
        elif resource == POD_CERTIFICATE_REQUESTS:
            await check_pod_certificate_request(node, attributes, self.initializer)
        else:
            self._checks[resource](node, attributes)

    # --------------------------------------------------------------------- pods

    def _check_pod(self, node: str, attributes: Attributes) -> None:
        operation, subresource = attributes.operation, attributes.subresource
        if subresource == "status":
            self._check_pod_status(node, attributes)
        elif subresource == "eviction":
            if operation != "CREATE":
                raise forbidden(attributes, f"unexpected operation {operation}")
            if not self._runs_on(node, attributes):
                raise forbidden(attributes, f"node {node} can only evict pods with spec.nodeName set to itself")
        elif subresource:
            allowed = "only 'status' and 'eviction' are allowed"
            raise forbidden(attributes, f"unexpected pod subresource {go_quote(subresource)}, {allowed}")
        elif operation == "CREATE":
            self._check_pod_create(node, attributes, attributes.object or {})
        elif operation == "DELETE":
            if not self._runs_on(node, attributes):
                quoted = go_quote(node)
                raise forbidden(attributes, f"node {quoted} can only delete pods with spec.nodeName set to itself")
        else:
            allowed = f"node {go_quote(node)} can only create and delete mirror pods"
            raise forbidden(attributes, f"unexpected operation {go_quote(operation)}, {allowed}")

    def _runs_on(self, node: str, attributes: Attributes) -> bool:
        pod = self._pod(attributes.namespace, attributes.name or metadata(attributes.object or {}).get("name", ""))
        return bool(pod["spec"].get("nodeName", "") == node)

    def _pod(self, namespace: str, name: str) -> Object:
        pod = self.initializer.getter.get("pods", namespace, name)
        if pod is None:
            raise new_not_found(_POD, name)
        return pod

    def _check_pod_create(self, node: str, attributes: Attributes, pod: Object) -> None:
        quoted = go_quote(node)
        if _MIRROR not in (metadata(pod).get("annotations") or {}):
            told = f"node {quoted} can only create mirror pods"
            raise forbidden(attributes, f"pod does not have {go_quote(_MIRROR)} annotation, {told}")
        if pod["spec"].get("nodeName", "") != node:
            raise forbidden(attributes, f"node {quoted} can only create pods with spec.nodeName set to itself")
        owners = owner_references(pod)
        if len(owners) > 1:
            told = "with a single owner reference set to itself"
            raise forbidden(attributes, f"node {quoted} can only create pods {told}")
        if [(owner.get("apiVersion"), owner.get("kind"), owner.get("name")) for owner in owners] != [
            ("v1", "Node", node)
        ]:
            raise forbidden(attributes, f"node {quoted} can only create pods with an owner reference set to itself")
        owner = owners[0]
        if not owner.get("controller"):
            told = "with a controller owner reference set to itself"
            raise forbidden(attributes, f"node {quoted} can only create pods {told}")
        if owner.get("blockOwnerDeletion"):
            raise forbidden(attributes, f"node {quoted} must not set blockOwnerDeletion on an owner reference")
        node_object = self.initializer.getter.get("nodes", "", node)
        if node_object is None:
            raise new_not_found(_NODE, node)
        if owner.get("uid") != metadata(node_object)["uid"]:
            uids = f"expected {owner.get('uid', '')} got {metadata(node_object)['uid']}"
            raise forbidden(attributes, f"node {node} UID mismatch: {uids}")
        try:
            resource = next(_referenced(pod["spec"]), "")
        except ValueError as error:
            raise forbidden(attributes, f"error checking mirror pod for API references: {error}") from None
        if resource:
            raise forbidden(attributes, f"node {quoted} can not create pods that reference {resource}")

    def _check_pod_status(self, node: str, attributes: Attributes) -> None:
        if attributes.operation != "UPDATE":
            raise forbidden(attributes, f"unexpected operation {go_quote(attributes.operation)}")
        pod, old, quoted = attributes.object or {}, attributes.old_object or {}, go_quote(node)
        if old["spec"].get("nodeName", "") != node:
            told = "can only update pod status for pods with spec.nodeName set to itself"
            raise forbidden(attributes, f"node {quoted} {told}")
        if (metadata(old).get("labels") or {}) != (metadata(pod).get("labels") or {}):
            raise forbidden(attributes, f"node {quoted} cannot update labels through pod status")
        status, before = pod.get("status") or {}, old.get("status") or {}
        if _claims(status) != _claims(before):
            raise forbidden(attributes, f"node {quoted} cannot update resource claim statues")
        extended = "extendedResourceClaimStatus"
        if status.get(extended) != before.get(extended):
            raise forbidden(attributes, f"node {quoted} cannot update extended resource claim status")
        allocatable = "nodeAllocatableResourceClaimStatuses"
        if self.initializer.features.at_least("v1.37") and status.get(allocatable) != before.get(allocatable):
            raise forbidden(attributes, f"node {quoted} cannot update node allocatable resource claim statuses")

    # -------------------------------------------------------------------- nodes

    def _check_node(self, node: str, attributes: Attributes) -> None:
        quoted, new, old = go_quote(node), attributes.object or {}, attributes.old_object or {}
        if attributes.name != node:
            raise forbidden(attributes, f"node {quoted} is not allowed to modify node {go_quote(attributes.name)}")
        labels, before = metadata(new).get("labels") or {}, metadata(old).get("labels") or {}
        if attributes.operation == "CREATE":
            if new["spec"].get("configSource") is not None:
                raise forbidden(attributes, f"node {quoted} is not allowed to create pods with a non-nil configSource")
            if names := _forbidden_labels(labels, {}):
                raise forbidden(attributes, f"node {quoted} is not allowed to set the following labels: {names}")
        elif attributes.operation == "UPDATE":
            spec, old_spec = new["spec"], old["spec"]
            source = spec.get("configSource")
            if source is not None and source != old_spec.get("configSource"):
                told = "is not allowed to update configSource to a new non-nil configSource"
                raise forbidden(attributes, f"node {quoted} {told}")
            if (spec.get("taints") or []) != (old_spec.get("taints") or []):
                raise forbidden(attributes, f"node {quoted} is not allowed to modify taints")
            if list(owner_references(new)) != list(owner_references(old)):
                raise forbidden(attributes, f"node {quoted} is not allowed to modify ownerReferences")
            if names := _forbidden_labels(labels, before):
                raise forbidden(attributes, f"is not allowed to modify labels: {names}")

    # ------------------------------------------------------------------- tokens

    async def _check_token(self, node: str, attributes: Attributes) -> None:
        spec = (attributes.object or {})["spec"]
        ref = spec.get("boundObjectRef") or {}
        if ref.get("apiVersion") != "v1" or ref.get("kind") != "Pod" or not ref.get("name"):
            raise forbidden(attributes, "node requested token not bound to a pod")
        uid = ref.get("uid")
        if not uid:
            raise forbidden(attributes, "node requested token with a pod binding without a uid")
        pod = self._pod(attributes.namespace, ref["name"])
        if uid != metadata(pod)["uid"]:
            told = "The object might have been deleted and then recreated"
            where = f"the UID in the bound object reference ({uid}) does not match the UID in record"
            raise forbidden(attributes, f"{where}. {told}")
        if pod["spec"].get("nodeName", "") != node:
            raise forbidden(attributes, "node requested token bound to a pod scheduled on a different node")
        if self.initializer.features.enabled("ServiceAccountNodeAudienceRestriction"):
            await self._check_audience(attributes, pod, spec.get("audiences") or [])

    async def _check_audience(self, attributes: Attributes, pod: Object, audiences: list[str]) -> None:
        if len(audiences) > 1:
            raise forbidden(attributes, "node may only request 0 or 1 audiences")
        audience = audiences[0] if audiences else ""
        problems = list[str]()
        if self._names_audience(pod, audience, problems):
            return
        quoted = go_quote(audience)
        if problems:
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise forbidden(attributes, f"error validating audience {quoted}: {text}")
        wanted = Wanted(
            user=attributes.user,
            verb="request-serviceaccounts-token-audience",
            resource_request=True,
            api_version="v1",
            resource=audience,
            namespace=attributes.namespace,
            name=attributes.name,
        )
        name, start, asked = attributes.user.name, f"audience {quoted} not found in pod spec volume, ", "this audience"
        if self.initializer.features.at_least("v1.37"):
            start, asked = "", f"audience {quoted}"
        decision, ending = Decision.ALLOW, f"{name} is not authorized to request tokens for {asked}"
        if self.initializer.authorizer is not None:
            try:
                decision, _ = await self.initializer.authorizer.authorize(wanted)
            except EvaluationError as error:
                decision = error.decision
                ending = f"error authorizing {name} to request tokens for {asked}: {error}"
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, f"{start}{ending}")

    def _names_audience(self, pod: Object, audience: str, problems: list[str]) -> bool:
        """Reports whether a volume of the pod asks for tokens of this audience, itself or through its driver."""
        for volume in pod["spec"].get("volumes") or ():
            for source in (volume.get("projected") or {}).get("sources") or ():
                token = source.get("serviceAccountToken")
                if token is not None and (token.get("audience") or "") == audience:
                    return True
            try:
                if audience in self._driver_audiences(pod, volume):
                    return True
            except LookupError as error:
                problem = str(error.args[0])
                if problem not in problems:
                    problems.append(problem)
        return False

    def _driver_audiences(self, pod: Object, volume: Object) -> set[str]:
        """LookupError for what isn't there."""
        meta = metadata(pod)
        if (volume.get("ephemeral") or {}).get("volumeClaimTemplate") is not None:
            driver = self._claimed_driver(meta["namespace"], f"{meta['name']}-{volume['name']}")
        elif (claim := volume.get("persistentVolumeClaim")) is not None:
            driver = self._claimed_driver(meta["namespace"], claim["claimName"])
        else:
            driver = _driver(volume)
        if not driver:
            return set()
        csi_driver = self._there("csidrivers.storage.k8s.io", "csidriver.storage.k8s.io", "", driver)
        return {request.get("audience") or "" for request in csi_driver["spec"].get("tokenRequests") or ()}

    def _claimed_driver(self, namespace: str, name: str) -> str:
        claim = self._there("persistentvolumeclaims", "persistentvolumeclaim", namespace, name)
        volume_name = claim["spec"].get("volumeName") or ""
        volume = self._there("persistentvolumes", "persistentvolume", "", volume_name)
        return _driver(volume["spec"])

    def _there(self, resource: str, called: str, namespace: str, name: str) -> Object:
        obj = self.initializer.getter.get(resource, namespace, name)
        if obj is None:
            raise LookupError(f"{called} {go_quote(name)} not found")
        return obj

    # ------------------------------------------------------------------- others

    def _check_claim(self, node: str, attributes: Attributes) -> None:
        if attributes.subresource != "status":
            raise forbidden(attributes, "may only update PVC status")
        if attributes.operation != "UPDATE":
            raise forbidden(attributes, f"unexpected operation {go_quote(attributes.operation)}")
        # Without what a kubelet may change, and what any write changes.
        old, new = claim_form(attributes.old_object or {}), claim_form(attributes.object or {})
        if old != new:
            told = "is not allowed to update fields other than status.quantity and status.conditions"
            raise forbidden(attributes, f"node {go_quote(node)} {told}: {text_difference(old, new)}")

    def _check_lease(self, node: str, attributes: Attributes) -> None:
        if attributes.namespace != _LEASE_NAMESPACE:
            place = go_quote(_LEASE_NAMESPACE)
            raise forbidden(attributes, f"can only access leases in the {place} system namespace")
        if _name(attributes) != node:
            raise forbidden(attributes, "can only access node lease with the same name as the requesting node")

    def _check_csi_node(self, node: str, attributes: Attributes) -> None:
        if _name(attributes) != node:
            raise forbidden(attributes, "can only access CSINode with the same name as the requesting node")
        if attributes.subresource != "status":
            return
        if not self.initializer.features.enabled("CSIVolumeHealth"):
            raise forbidden(attributes, "CSIVolumeHealth feature gate is disabled")
        if attributes.operation != "UPDATE":
            raise forbidden(attributes, f"unexpected operation {go_quote(attributes.operation)}")
        if (attributes.object or {})["spec"] != (attributes.old_object or {})["spec"]:
            raise forbidden(attributes, f"node {go_quote(node)} is not allowed to modify CSINode spec via status")

    def _check_slice(self, node: str, attributes: Attributes) -> None:
        if attributes.operation == "UPDATE":
            return
        obj = (attributes.object if attributes.operation == "CREATE" else attributes.old_object) or {}
        if obj["spec"].get("nodeName") != node:
            verb = attributes.operation.lower()
            raise forbidden(attributes, f"can only {verb} ResourceSlice with the same NodeName as the requesting node")

    def _check_request(self, node: str, attributes: Attributes) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        if attributes.operation != "CREATE" or spec.get("signerName") not in _KUBELET_SIGNERS:
            return
        if self.initializer.features.enabled("AllowInsecureKubeletCertificateSigningRequests"):
            return
        from cryptography.x509.oid import NameOID

        try:
            common_name = subject(spec.get("request") or "")
        except ValueError as error:
            raise forbidden(attributes, f"unable to parse csr: {error}") from None
        wanted = f"system:node:{node}"
        common_names = [name.value for name in common_name.get_attributes_for_oid(NameOID.COMMON_NAME)]
        if common_names[-1:] != [wanted]:
            raise forbidden(attributes, f"can only create a node CSR with CN={wanted}")


def _name(attributes: Attributes) -> str:
    if attributes.operation == "CREATE":
        return str(metadata(attributes.object or {}).get("name", ""))
    return attributes.name


def _claims(status: Object) -> list[tuple[Any, Any]]:
    return [(claim.get("name"), claim.get("resourceClaimName")) for claim in status.get("resourceClaimStatuses") or ()]


def _driver(source: Object) -> str:
    """The driver of a volume, empty where it needs none. LookupError for disks that no driver stands for."""
    if source.get("csi") is not None:
        return str(source["csi"].get("driver", ""))
    if (kind := (source.get("azureDisk") or {}).get("kind", "Managed")) != "Managed":
        raise LookupError(f"kind({kind}) is not supported in csi migration")
    return next((driver for field, driver in _MIGRATED.items() if source.get(field) is not None), "")


def _referenced(spec: Object) -> Iterator[str]:
    """Yields the resources that a pod refers to, in upstream's order. Raises ValueError for an invalid source."""
    if spec.get("serviceAccountName"):
        yield "serviceaccounts"
    kinds = {kind for kind, _ in secrets_and_config_maps(spec)}
    yield from (kind for kind in ("secrets", "configmaps") if kind in kinds)
    if spec.get("resourceClaims"):
        yield "resourceclaims"
    for volume in spec.get("volumes") or ():
        yield from (told for field, told in _VOLUMES.items() if volume.get(field) is not None)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from (told for field, told in _PROJECTED.items() if source.get(field) is not None)
            if not source:
                raise ValueError(f"unknown source for projected volume {go_quote(volume['name'])}")


def _forbidden_labels(labels: dict[str, str], before: dict[str, str]) -> str:
    """Returns the changed labels that a kubelet may not set."""
    changed = {key for key in labels.keys() | before.keys() if labels.get(key) != before.get(key)}
    return ", ".join(sorted(key for key in changed if _is_forbidden(key)))


def _is_forbidden(label: str) -> bool:
    namespace = label.partition("/")[0] if "/" in label else ""
    if _is_within(namespace, _RESTRICTED):
        return True
    if not any(_is_within(namespace, name) for name in _KUBERNETES):
        return False
    return label not in _KUBELET_LABELS and not any(_is_within(namespace, name) for name in _KUBELET_NAMESPACES)


def _is_within(namespace: str, parent: str) -> bool:
    return namespace == parent or namespace.endswith(f".{parent}")
