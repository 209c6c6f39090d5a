"""Only who may `attest` for a signer writes its bundles of trust.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/certificates/ctbattest/admission.go.
"""

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.admission.signers import is_authorized_for_signer
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object

# What the garbage collector and storage migration change.
_COLLECTORS: frozenset[str] = frozenset({"ownerReferences", "finalizers", "managedFields"})


class ClusterTrustBundleAttest(Handler):
    resources = frozenset({GroupResource("certificates.k8s.io", "clustertrustbundles")})
    subresources = True
    feature_gate = "ClusterTrustBundle"

    async def validate(self, attributes: Attributes) -> None:
        bundle = attributes.object or {}
        signer = bundle["spec"].get("signerName") or ""
        if not signer or (attributes.old_object is not None and _own(bundle) == _own(attributes.old_object)):
            return
        if not await is_authorized_for_signer(self.initializer.authorizer, attributes.user, "attest", signer):
            raise forbidden(attributes, f"user not permitted to attest for signerName {go_quote(signer)}")


def _own(bundle: Object) -> Object:
    meta = {name: value for name, value in bundle["metadata"].items() if name not in _COLLECTORS}
    return {**bundle, "metadata": meta}
