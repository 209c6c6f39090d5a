"""Client certificates: CN is the user, each O a group.

Upstream: k8s.io/apiserver/pkg/authentication/request/x509/x509.go. What checks them is imported with the first that comes.
"""

import hashlib
from typing import TYPE_CHECKING, Final

from fakeapiserver.apimachinery.errors import new_unauthorized
from fakeapiserver.auth import client_certificates
from fakeapiserver.auth.group import add_authenticated
from fakeapiserver.auth.interfaces import Credentials, UserInfo
from fakeapiserver.clock import Clock, SystemClock

if TYPE_CHECKING:
    from fakeapiserver.auth.certificates.certificate import Certificate
    from fakeapiserver.auth.client_certificates import CertificateVerifier

CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
# Upstream's own attribute in a subject: the user's UID (k8s.io/kubernetes: asn1 X509UID).
_UID: Final = "1.3.6.1.4.1.57683.2"
_ORGANIZATION: Final = "2.5.4.10"
_CACHE_SIZE: Final = 1024

_Key = tuple[bytes, tuple[bytes, ...]]


class X509:
    """Checks the peer certificate against a client CA bundle (PEM).

    Valid certificates are cached until one of their chain expires, or the bundle changes. `reads_uids`: a subject
    may have a user's UID.
    """

    def __init__(self, client_ca: bytes, clock: Clock | None = None, *, reads_uids: bool = True) -> None:
        self._reads_uids = reads_uids
        self._clock = clock or SystemClock()
        self.use(client_ca)

    def use(self, client_ca: bytes) -> None:
        """Another bundle from now on."""
        self._client_ca = client_ca
        self._verifier: CertificateVerifier | None = None
        self._known: dict[_Key, tuple[float, UserInfo | None]] = {}

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        if not credentials.peer_certificate:
            return None
        key = (credentials.peer_certificate, credentials.peer_chain)
        now = self._clock.now()
        known = self._known.get(key)
        if known is None or known[0] < now:
            known = self._verify(key, now)
            if len(self._known) >= _CACHE_SIZE:
                self._known.pop(next(iter(self._known)))
            self._known[key] = known
        return known[1]

    def _verify(self, key: _Key, now: float) -> tuple[float, UserInfo | None]:
        try:
            if self._verifier is None:
                self._verifier = client_certificates.CertificateVerifier(self._client_ca)
            certificate, expires = self._verifier.verify(*key, now)
            user = user_of(certificate, reads_uids=self._reads_uids)
        except ValueError as error:
            raise new_unauthorized() from error
        return expires, add_authenticated(user) if user is not None else None


def user_of(certificate: "Certificate", *, reads_uids: bool = True) -> UserInfo | None:
    """The user a checked certificate names; None without a CN. ValueError on an unusable UID attribute."""
    name = certificate.common_name
    if not name:
        return None
    uids = certificate.values(_UID) if reads_uids else []
    if len(uids) > 1 or "" in uids:
        raise ValueError("expected 1 UID, not empty")
    credential = "X509SHA256=" + hashlib.sha256(certificate.der).hexdigest()
    groups = tuple(certificate.values(_ORGANIZATION))
    return UserInfo(name, uids[0] if uids else "", groups, {CREDENTIAL_ID: (credential,)})
