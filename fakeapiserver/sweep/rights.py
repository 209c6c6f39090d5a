"""The rights of the operator: all, or those of its service account.

Each start of the operator is a user of its own, so that faults can be bound to it. All of them are in a group that gets the bindings of the
service account.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster.cluster import Cluster

_GROUP: Final = "operator-under-test"
_ALL: Final = ("system:masters",)
_API: Final = "rbac.authorization.k8s.io"


def groups_of(service_account: str) -> Sequence[str]:
    """The groups of the operator's users. `service_account` is `NAMESPACE/NAME`, or "" for an operator that may do everything."""
    if not service_account:
        return _ALL
    namespace = service_account.partition("/")[0]
    return (_GROUP, "system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def grant(cluster: Cluster, service_account: str) -> None:
    """Binds the roles of the service account to the operator's group, too. Raises ValueError if it has none."""
    bindings = [
        binding
        for resource in ("clusterrolebindings", "rolebindings")
        for binding in cluster.list(resource, all_namespaces=True)
        if any(_is(subject, service_account, binding) for subject in binding.get("subjects") or ())
    ]
    if not bindings:
        raise ValueError(
            f"no RoleBinding or ClusterRoleBinding names the service account {service_account}: add them to the scenario's objects"
        )
    cluster.apply([_for_group(binding) for binding in bindings])


def _is(subject: Object, service_account: str, binding: Object) -> bool:
    namespace = subject.get("namespace") or binding["metadata"].get("namespace", "")
    return subject.get("kind") == "ServiceAccount" and f"{namespace}/{subject.get('name')}" == service_account


def _for_group(binding: Object) -> Object:
    meta = binding["metadata"]
    place = {"namespace": meta["namespace"]} if "namespace" in meta else {}
    return {
        "apiVersion": f"{_API}/v1",
        "kind": "RoleBinding" if place else "ClusterRoleBinding",
        "metadata": {"name": f"{meta['name']}-{_GROUP}", **place},
        "roleRef": binding["roleRef"],
        "subjects": [{"kind": "Group", "name": _GROUP, "apiGroup": _API}],
    }
