"""The permission to act for a signer of certificates.

Upstream: k8s.io/kubernetes/pkg/certauthorization/certauthorization.go.
"""

from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, EvaluationError, UserInfo


async def is_authorized_for_signer(authorizer: Authorizer | None, user: UserInfo, verb: str, signer: str) -> bool:
    """Reports whether the user may `verb` for this signer, or for all of its domain (`example.com/*`)."""
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
        if await is_allowed(authorizer, wanted):
            return True
    return False


async def is_allowed(authorizer: Authorizer | None, wanted: Attributes) -> bool:
    """Reports whether the authorizer allows it; an error counts as no. Without an authorizer everything is allowed."""
    if authorizer is None:
        return True
    try:
        decision, _ = await authorizer.authorize(wanted)
    except EvaluationError:
        return False
    return decision is Decision.ALLOW
