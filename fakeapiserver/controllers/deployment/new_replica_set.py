"""The replica set that a deployment's template asks for.

Upstream: pkg/controller/deployment/sync.go, getNewReplicaSet.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.workloads.controller_ref_manager import new_controller_ref
from fakeapiserver.component_helpers.workloads.pod_template import compute_hash
from fakeapiserver.controllers.deployment import counts, revisions
from fakeapiserver.controllers.deployment.revisions import POD_TEMPLATE_HASH

KIND: Final = GroupVersionKind("apps", "v1", "Deployment")
_MAX_NAME: Final = 253


def new_replica_set(deployment: Object, old: Sequence[Object], number: int) -> Object:
    """Returns the replica set of a deployment's template, as revision `number`; `old` are the other ones."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    template = spec["template"]
    digest = compute_hash(template, deployment["status"].get("collisionCount"))
    labels = {**((template.get("metadata") or {}).get("labels") or {}), POD_TEMPLATE_HASH: digest}
    selector = {
        **spec["selector"],
        "matchLabels": {**(spec["selector"].get("matchLabels") or {}), POD_TEMPLATE_HASH: digest},
    }
    new: Object = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name'][: _MAX_NAME - len(digest) - 1]}-{digest}",
            "namespace": metadata["namespace"],
            "ownerReferences": [new_controller_ref(deployment, KIND)],
            "labels": labels,
        },
        "spec": {
            "replicas": counts.new_replicas(deployment, old, 0),
            "selector": selector,
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }
    if wait := spec.get("minReadySeconds", 0):
        new["spec"]["minReadySeconds"] = wait
    annotations = revisions.new_annotations(deployment, new, number)
    return revisions.with_annotations(new, annotations | counts.replicas_annotations(deployment))
