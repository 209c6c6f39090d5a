"""Who may act for a signer of certificates.

Upstream: k8s.io/kubernetes/pkg/certauthorization/certauthorization.go.
"""

from fakeapiserver.admission.interfaces import Initializer
from fakeapiserver.auth.interfaces import Attributes, Decision, EvaluationError, UserInfo


async def is_authorized_for_signer(initializer: Initializer, user: UserInfo, verb: str, signer: str) -> bool:
    """Whether the user may `verb` for this signer, or for all of its domain (`example.com/*`)."""
    for name in (signer, signer.partition("/")[0] + "/*"):
        wanted = Attributes(
            user=user,
            verb=verb,
            resource_request=True,
            api_group="certificates.k8s.io",
            api_version="*",
            resource="signers",
            name=name,
        )
        if await is_allowed(initializer, wanted):
            return True
    return False


async def is_allowed(initializer: Initializer, wanted: Attributes) -> bool:
    """Who can't find out doesn't allow it; without an authorizer everything is."""
    if initializer.authorizer is None:
        return True
    try:
        decision, _ = await initializer.authorizer.authorize(wanted)
    except EvaluationError:
        return False
    return decision is Decision.ALLOW
