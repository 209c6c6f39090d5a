"""Service account tokens: a signed statement which account, and which pod, secret or node it is bound to.

Upstream: pkg/serviceaccount.
"""

from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.auth.authenticators.serviceaccount.claims import BoundValidator
from fakeapiserver.auth.authenticators.serviceaccount.jwt import SignedTokens
from fakeapiserver.auth.authenticators.serviceaccount.legacy import ISSUER as LEGACY_ISSUER
from fakeapiserver.auth.authenticators.serviceaccount.legacy import Label, LegacyValidator

__all__ = ["LEGACY_ISSUER", "BoundValidator", "Label", "LegacyValidator", "ObjectReader", "SignedTokens"]
