"""Client certificates: CN is the user, each O a group.

Upstream: k8s.io/apiserver/pkg/authentication/request/x509/x509.go.
"""

import hashlib
from typing import Final

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier
from cryptography.x509.verification import (
    ClientVerifier,
    Criticality,
    ExtensionPolicy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from fakeapiserver.apimachinery.errors import new_unauthorized
from fakeapiserver.auth.interfaces import Credentials, UserInfo
from fakeapiserver.clock import Clock, SystemClock

CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
# Upstream's own attribute in a subject: the user's UID (k8s.io/kubernetes: asn1 X509UID).
_UID_OID: Final = ObjectIdentifier("1.3.6.1.4.1.57683.2")
_CLIENT_USAGES: Final = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})
_CACHE_SIZE: Final = 256

_Key = tuple[bytes, tuple[bytes, ...]]


class X509:
    """Checks the peer certificate against a client CA bundle (PEM; ValueError when it holds no certificate). What was found
    right is remembered per certificate until a certificate of its chain expires."""

    def __init__(self, client_ca: bytes, clock: Clock | None = None) -> None:
        self._store = Store(x509.load_pem_x509_certificates(client_ca))
        self._clock = clock or SystemClock()
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
            leaf = x509.load_der_x509_certificate(key[0])
            others = [x509.load_der_x509_certificate(der) for der in key[1]]
            chain = _verifier(self._store, now).verify(leaf, others).chain
            if not all(_may_be_client(certificate) for certificate in chain):
                raise new_unauthorized()
            expires = min(certificate.not_valid_after_utc.timestamp() for certificate in chain)
            return expires, user_of(leaf, key[0])
        except (ValueError, VerificationError, x509.DuplicateExtension) as error:
            raise new_unauthorized() from error


def _verifier(store: Store, now: float) -> ClientVerifier:
    """Ordinary client certificates (kubeadm's, say) have neither SAN nor AKI, which the default policy demands."""
    from datetime import UTC, datetime

    ca_policy = ExtensionPolicy.permit_all().require_present(x509.BasicConstraints, Criticality.AGNOSTIC, None)
    builder = PolicyBuilder().store(store).time(datetime.fromtimestamp(now, UTC))
    policies = builder.extension_policies(ca_policy=ca_policy, ee_policy=ExtensionPolicy.permit_all())
    return policies.build_client_verifier()


def _may_be_client(certificate: x509.Certificate) -> bool:
    """No extended key usage at all allows everything, as in Go."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return any(usage in _CLIENT_USAGES for usage in usages)


def user_of(certificate: x509.Certificate, der: bytes) -> UserInfo | None:
    """The user a checked certificate names; None without a CN. ValueError on an unusable UID attribute."""
    names = _values(certificate, NameOID.COMMON_NAME)
    if not names or not names[-1]:
        return None
    uids = _values(certificate, _UID_OID)
    if len(uids) > 1 or "" in uids:
        raise ValueError("expected 1 UID, not empty")
    credential = "X509SHA256=" + hashlib.sha256(der).hexdigest()
    groups = tuple(_values(certificate, NameOID.ORGANIZATION_NAME))
    return UserInfo(names[-1], uids[0] if uids else "", groups, {CREDENTIAL_ID: (credential,)})


def _values(certificate: x509.Certificate, oid: ObjectIdentifier) -> list[str]:
    values = [attribute.value for attribute in certificate.subject.get_attributes_for_oid(oid)]
    return [value if isinstance(value, str) else value.decode() for value in values]
