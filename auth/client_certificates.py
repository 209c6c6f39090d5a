"""Checks client certificates against a CA bundle, as Go's crypto/x509 does for client authentication.

Upstream: k8s.io/apiserver/pkg/authentication/request/x509/x509.go; crypto/x509's Verify.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Final

from fakeapiserver.auth.certificates.certificate import Certificate, parse
from fakeapiserver.auth.certificates.chains import valid_chain

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


class CertificateVerifier:
    """`client_ca` is PEM; ValueError when it holds no certificate. Any of its certificates may be the end of a chain, as in Go."""

    def __init__(self, client_ca: bytes) -> None:
        self._authorities = list(_certificates(client_ca))
        if not self._authorities:
            raise ValueError("data does not contain any valid RSA or ECDSA certificates")

    def verify(self, leaf: bytes, chain: tuple[bytes, ...], now: float) -> tuple[Certificate, float]:
        """Verifies a client certificate; all DER. Returns it, and when the first certificate of its chain expires
        (seconds since the epoch).

        Raises ValueError if it is no client certificate of this authority.
        """
        first, *others = map(parse, (leaf, *chain))
        verified = valid_chain(first, others, self._authorities, now)
        return first, min(certificate.not_after for certificate in verified)


def _certificates(pem: bytes) -> Iterator[Certificate]:
    for block in _PEM.finditer(pem):
        yield parse(b64decode(block[1]))
