"""OpenID Connect: JWTs that other issuers have signed.

Upstream: k8s.io/apiserver/plugin/pkg/authenticator/token/oidc, pkg/authentication/cel, pkg/apis/apiserver/validation.
"""

from fakeapiserver.auth.authenticators.oidc.authenticator import JWTAuthenticator, JWTAuthenticators
from fakeapiserver.auth.authenticators.oidc.configuration import ALGORITHMS, validate

__all__ = ["ALGORITHMS", "JWTAuthenticator", "JWTAuthenticators", "validate"]
