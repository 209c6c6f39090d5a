"""The mode Node: a kubelet may read what the pods on its node need, and nothing else of these kinds.

Upstream: k8s.io/kubernetes/plugin/pkg/auth/authorizer/node/{node_authorizer,graph,graph_populator}.go.

The graph follows the writes to pods, volumes, attachments and resource slices: a write changes only what it is about, and nothing
is done before the first kubelet asks.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.apis.pod_references import SECRET_REFS, secrets_and_config_maps
from fakeapiserver.auth.interfaces import Attributes, Decision, UserInfo
from fakeapiserver.auth.node_identifier import node_name
from fakeapiserver.auth.rules import PolicyRule, Rule

_Object = Mapping[str, Any]
_Answer = tuple[Decision, str]
# Kind, namespace and name of something a node may have to do with.
_Vertex = tuple[str, str, str]

_LEASES: Final = "kube-node-lease"
_MIRROR: Final = "kubernetes.io/config.mirror"
PODS: Final = "pods"
VOLUMES: Final = "persistentvolumes"
ATTACHMENTS: Final = "volumeattachments.storage.k8s.io"
SLICES: Final = "resourceslices.resource.k8s.io"
CERTIFICATE_REQUESTS: Final = "podcertificaterequests.certificates.k8s.io"
RESOURCES: Final = (PODS, VOLUMES, ATTACHMENTS, SLICES, CERTIFICATE_REQUESTS)
_ALLOW: Final[_Answer] = (Decision.ALLOW, "")
_NOTHING: Final[_Answer] = (Decision.NO_OPINION, "")
_CHANGES: Final = ("get", "create", "update", "patch", "delete")
# A volume's secrets that a kubelet needs.
_CSI_REFS: Final = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")


def _no(reason: str = "") -> _Answer:
    return Decision.NO_OPINION, reason


# ------------------------------------------------------------------------ graph


class _Graph:
    """`nodes`: on which node something is, or how many of the pods that refer to it are on which; `behind`: what is reached
    through something else (a volume through its claim, a volume's secret through the volume)."""

    def __init__(self, reader: ObjectReader) -> None:
        self.revision = reader.revision
        self._nodes: dict[_Vertex, Counter[str]] = {}
        self._behind: dict[_Vertex, Counter[_Vertex]] = {}
        for resource in RESOURCES:
            for obj in reader.list(resource):
                self._count(resource, obj, 1)

    def follow(self, reader: ObjectReader) -> None:
        """LookupError when too much has happened since."""
        for resource, old, new in reader.changes(RESOURCES, self.revision):
            if old is not None:
                self._count(resource, old, -1)
            if new is not None:
                self._count(resource, new, 1)

    def reaches(self, vertex: _Vertex, node: str) -> bool:
        if node in self._nodes.get(vertex, ()):
            return True
        return any(self.reaches(next_one, node) for next_one in self._behind.get(vertex, ()))

    def _count(self, resource: str, obj: _Object, times: int) -> None:
        meta, spec = obj["metadata"], obj.get("spec") or {}
        namespace, name = meta.get("namespace", ""), meta["name"]
        if resource == VOLUMES:
            for vertex, through in _volume_edges(name, spec):
                _add(self._behind, vertex, through, times)
            return
        if node := spec.get("nodeName"):
            kind = resource.partition(".")[0]
            for vertex in ((kind, namespace, name), *(_needs(obj) if resource == PODS else ())):
                _add(self._nodes, vertex, node, times)


def _add(edges: dict[_Vertex, Counter[Any]], vertex: _Vertex, to: Any, times: int) -> None:
    counts = edges.setdefault(vertex, Counter())
    counts[to] += times
    if not counts[to]:
        del counts[to]
        if not counts:
            del edges[vertex]


def _needs(pod: _Object) -> Iterator[_Vertex]:
    """Yields the objects that the kubelet of the pod's node may read for it; none for a mirror pod, which the
    kubelet creates itself.
    """
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    if _MIRROR in (meta.get("annotations") or {}):
        return
    namespace = meta["namespace"]
    needs = {("serviceaccounts", spec.get("serviceAccountName") or "")}
    needs |= set(secrets_and_config_maps(spec))
    needs |= {("persistentvolumeclaims", _claimed(volume, meta["name"])) for volume in spec.get("volumes") or ()}
    needs |= {("resourceclaims", name) for name in _claims(spec, status)}
    yield from ((kind, namespace, name) for kind, name in needs if name)


def _claimed(volume: _Object, pod: str) -> str:
    """The claim that a volume stands for."""
    if volume.get("ephemeral") is not None:
        return f"{pod}-{volume['name']}"
    return str((volume.get("persistentVolumeClaim") or {}).get("claimName", ""))


def _claims(spec: _Object, status: _Object) -> Iterator[str]:
    """The resource claims of a pod: by name, or as they were made from a template."""
    made = {entry.get("name"): entry.get("resourceClaimName") for entry in status.get("resourceClaimStatuses") or ()}
    for claim in spec.get("resourceClaims") or ():
        yield claim.get("resourceClaimName") or made.get(claim.get("name")) or ""
    yield (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName", "")


def _volume_edges(name: str, spec: _Object) -> Iterator[tuple[_Vertex, _Vertex]]:
    """A bound volume is reached through its claim, its secrets through the volume."""
    claim = spec.get("claimRef")
    if claim is None:
        return
    home, volume = claim.get("namespace", ""), ("persistentvolumes", "", name)
    yield volume, ("persistentvolumeclaims", home, claim.get("name", ""))
    secrets = {
        (source.get("secretNamespace") or home, source.get("secretName")) for source in [spec.get("azureFile") or {}]
    }
    references = [(spec.get(kind) or {}).get("secretRef") or {} for kind in SECRET_REFS]
    references += [(spec.get("csi") or {}).get(kind) or {} for kind in _CSI_REFS]
    secrets |= {(reference.get("namespace") or home, reference.get("name")) for reference in references}
    yield from ((("secrets", namespace, secret), volume) for namespace, secret in secrets if secret)


# ------------------------------------------------------------------- authorizer


class Node:
    """`rules` gives what every node may do (the cluster role system:node); it is read when the first node asks."""

    def __init__(
        self, reader: ObjectReader, rules: Callable[[], Sequence[PolicyRule]], features: FeatureGates | None = None
    ) -> None:
        self._features = features or FeatureGates()
        self._reader = reader
        self._read_rules = rules
        self._rules: list[Rule] | None = None
        self._generation: int | None = None
        self._graph: _Graph | None = None

    async def authorize(self, attributes: Attributes) -> _Answer:
        name = node_name(attributes.user)
        if name is None:
            return _NOTHING
        if not name:
            return _no(f"unknown node for user {go_quote(attributes.user.name)}")
        if attributes.resource_request:
            ask = _ASKED.get((attributes.api_group, attributes.resource))
            if ask is not None:
                return ask(self, name, attributes)
        if self._rules is None:
            self._rules = [Rule(rule) for rule in self._read_rules()]
        return _ALLOW if any(rule.allows(attributes) for rule in self._rules) else _no()

    async def rules_for(
        self, user: UserInfo, namespace: str
    ) -> tuple[list[dict[str, list[str]]], list[dict[str, list[str]]], bool, str]:
        """Returns no rules: a node's permissions can't be listed."""
        if node_name(user) is None:
            return [], [], False, ""
        return [], [], True, "node authorizer does not support user rule resolution"

    def _reaches(self, node: str, kind: str, attributes: Attributes) -> bool:
        if self._graph is not None and self._graph.revision == self._reader.revision:
            return self._graph.reaches((kind, attributes.namespace, attributes.name), node)
        generation = self._reader.generation(RESOURCES)
        if self._graph is None:
            self._graph = _Graph(self._reader)
        elif generation != self._generation:
            try:
                self._graph.follow(self._reader)
            except LookupError:
                self._graph = _Graph(self._reader)
        self._graph.revision, self._generation = self._reader.revision, generation
        return self._graph.reaches((kind, attributes.namespace, attributes.name), node)

    def _related(self, node: str, attributes: Attributes) -> _Answer:
        """Allowed if the object has to do with the node."""
        if not attributes.name:
            return _no("No Object name found")
        if self._reaches(node, attributes.resource, attributes):
            return _ALLOW
        return _no(f"no relationship found between node '{node}' and this object")

    def _get(self, node: str, attributes: Attributes) -> _Answer:
        if attributes.verb != "get":
            return _no("can only get individual resources of this type")
        if attributes.subresource:
            return _no("cannot get subresource")
        return self._related(node, attributes)

    def _read(self, node: str, attributes: Attributes) -> _Answer:
        if not attributes.is_read_only:
            return _no("can only read resources of this type")
        if attributes.subresource:
            return _no("cannot read subresource")
        if not attributes.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, attributes)

    def _claim(self, node: str, attributes: Attributes) -> _Answer:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(node, attributes)

    def _service_account(self, node: str, attributes: Attributes) -> _Answer:
        if attributes.verb == "get" and not attributes.subresource:
            return self._read(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return _no("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, attributes)

    def _lease(self, node: str, attributes: Attributes) -> _Answer:
        if attributes.verb not in _CHANGES:
            return _no("can only get, create, update, patch, or delete a node lease")
        if attributes.namespace != _LEASES:
            return _no(f"can only access leases in the {go_quote(_LEASES)} system namespace")
        # what is created has no name yet, as far as an authorizer sees
        if attributes.verb != "create" and attributes.name != node:
            return _no("can only access node lease with the same name as the requesting node")
        return _ALLOW

    def _csi_node(self, node: str, attributes: Attributes) -> _Answer:
        if attributes.verb not in _CHANGES:
            return _no("can only get, create, update, patch, or delete a CSINode")
        if attributes.subresource == "status" and self._features.at_least("v1.37"):
            if not self._features.enabled("CSIVolumeHealth"):
                return _no("CSINode status access requires CSIVolumeHealth feature")
            if attributes.verb not in ("get", "update", "patch"):
                return _no("can only get, update, or patch CSINode status")
        elif attributes.subresource:
            return _no("cannot authorize CSINode subresources")
        if attributes.verb != "create" and attributes.name != node:
            return _no("can only access CSINode with the same name as the requesting node")
        return _ALLOW

    def _resource_slice(self, node: str, attributes: Attributes) -> _Answer:
        if attributes.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        match attributes.verb:
            case "create":
                return _ALLOW
            case "get" | "update" | "patch" | "delete":
                return self._related(node, attributes)
            case "watch" | "list" | "deletecollection":
                if _selects(attributes, "spec.nodeName", node):
                    return _ALLOW
                return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")
        verbs = "get, watch, list, create, update, patch, delete, deletecollection"
        return _no(f"only the following verbs are allowed for a ResourceSlice: {verbs}")

    def _pod_certificate_request(self, node: str, attributes: Attributes) -> _Answer:
        if not self._features.enabled("PodCertificateRequest"):
            return _no()
        if attributes.subresource:
            return _no("nodes may not access the status subresource of PodCertificateRequests")
        match attributes.verb:
            case "create":
                return _ALLOW
            case "get":
                return self._related(node, attributes)
            case "list" | "watch":
                if _selects(attributes, "spec.nodeName", node):
                    return _ALLOW
                return _no("can only list/watch podcertificaterequests with nodeName field selector")
        return _no(f"nodes may not {attributes.verb} podcertificaterequests")

    def _node(self, node: str, attributes: Attributes) -> _Answer:
        match attributes.subresource, attributes.verb:
            case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
                return _ALLOW
            case "", "get" | "list" | "watch":
                if attributes.name == node:
                    return _ALLOW
                what = f"'{attributes.name}'" if attributes.name else "all nodes"
                return _no(f"node '{node}' cannot read {what}, only its own Node object")
        return _no()

    def _pod(self, node: str, attributes: Attributes) -> _Answer:
        match attributes.subresource, attributes.verb:
            case "", "get":
                return self._get(node, attributes)
            case "", "list" | "watch":
                if _selects(attributes, "spec.nodeName", node):
                    return _ALLOW
                if attributes.name:
                    return self._related(node, attributes)
                return _no("can only list/watch pods with spec.nodeName field selector")
            case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
                return _ALLOW
        return _no()


_ASKED: Final[Mapping[tuple[str, str], Callable[[Node, str, Attributes], _Answer]]] = {
    ("", "secrets"): Node._read,
    ("", "configmaps"): Node._read,
    ("", "persistentvolumeclaims"): Node._claim,
    ("", "persistentvolumes"): Node._get,
    ("resource.k8s.io", "resourceclaims"): Node._get,
    ("storage.k8s.io", "volumeattachments"): Node._get,
    ("", "serviceaccounts"): Node._service_account,
    ("coordination.k8s.io", "leases"): Node._lease,
    ("storage.k8s.io", "csinodes"): Node._csi_node,
    ("resource.k8s.io", "resourceslices"): Node._resource_slice,
    ("", "nodes"): Node._node,
    ("", "pods"): Node._pod,
    ("certificates.k8s.io", "podcertificaterequests"): Node._pod_certificate_request,
}


def _selects(attributes: Attributes, field: str, value: str) -> bool:
    """Whether a field selector leaves nothing but one value."""
    requirements = attributes.selectors.fields.requirements if attributes.selectors is not None else ()
    return any((r.field, r.operator, r.value) == (field, "=", value) for r in requirements)
