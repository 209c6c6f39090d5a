"""Only users that may `sign` for a pod certificate request's signer may change its status.

Upstream: pkg/registry/certificates/podcertificaterequest/strategy.go (StatusStrategy.ValidateUpdate).
"""

from fakeapiserver.admission.signers import is_authorized_for_signer
from fakeapiserver.apimachinery.field import ErrorList, forbidden
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.interfaces import Authorizer
from fakeapiserver.registry.generic.write_request import Guard, WriteRequest


class SignerAccess(Guard):
    """The guard of PodCertificateRequests."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def errors(self, request: WriteRequest, obj: Object, old: Object | None, errors: ErrorList) -> ErrorList:
        if errors or old is None or request.subresource != "status":
            return errors
        if (obj.get("status") or {}) == (old.get("status") or {}):
            return []
        signer: str = old["spec"]["signerName"]
        if await is_authorized_for_signer(self._authorizer, request.user, "sign", signer):
            return []
        name = go_quote(request.user.name)
        return [forbidden("spec.signerName", f'User {name} is not permitted to "sign" for signer {go_quote(signer)}')]
