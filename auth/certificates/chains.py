"""Builds and verifies the chains of a client certificate: all that lead to a trusted certificate, until one of them is valid.

Upstream: crypto/x509/verify.go {Verify,buildChains,isValid}, for ExtKeyUsageClientAuth.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from fakeapiserver.auth.certificates.certificate import Certificate
from fakeapiserver.auth.certificates.constraints import permits
from fakeapiserver.auth.certificates.policies import policies_are_valid
from fakeapiserver.auth.certificates.signatures import is_signed_by

_CLIENT: Final = "1.3.6.1.5.5.7.3.2"
_ANY_USAGE: Final = "2.5.29.37.0"
_MOST_SIGNATURE_CHECKS: Final = 100

_Chain = tuple[Certificate, ...]


def valid_chain(leaf: Certificate, sent: Sequence[Certificate], trusted: Sequence[Certificate], now: float) -> _Chain:
    """Returns a valid chain, leaf first. Raises ValueError if no chain is valid.

    `sent` and `trusted` may be in any order. A client's certificate that is itself trusted needs no authority."""
    if not _is_valid((), leaf, now):
        raise ValueError("x509: certificate has expired or is not yet valid, or has an unhandled critical extension")
    builder = _Builder(sent, trusted, now)
    is_trusted = any(leaf.der == certificate.der for certificate in trusted)
    for chain in ((leaf,),) if is_trusted else builder.chains((leaf,)):
        if all(map(_may_be_client, chain)) and policies_are_valid(chain):
            return chain
    raise ValueError("x509: certificate signed by unknown authority, or for another purpose")


class _Builder:
    """Checks a hundred signatures at most, as each request with other certificates costs so many."""

    def __init__(self, sent: Sequence[Certificate], trusted: Sequence[Certificate], now: float) -> None:
        self._sent, self._trusted, self._now = sent, trusted, now
        self._checks = 0

    def chains(self, chain: _Chain) -> Iterator[_Chain]:
        for candidate, is_root in self._candidates(chain[-1]):
            if candidate.key is None or any(_is_same(candidate, known) for known in chain):
                continue
            self._checks += 1
            if self._checks > _MOST_SIGNATURE_CHECKS:
                return
            if not is_signed_by(chain[-1], candidate) or not _is_valid(chain, candidate, self._now):
                continue
            if is_root:
                yield (*chain, candidate)
            elif candidate.extensions.authority:
                yield from self.chains((*chain, candidate))

    def _candidates(self, child: Certificate) -> Iterator[tuple[Certificate, bool]]:
        for is_root, certificates in ((True, self._trusted), (False, self._sent)):
            for certificate in certificates:
                if certificate.subject == child.issuer:
                    yield certificate, is_root


def _is_same(one: Certificate, other: Certificate) -> bool:
    return (one.subject, one.key_der, one.extensions.alternatives) == (
        other.subject,
        other.key_der,
        other.extensions.alternatives,
    )


def _is_valid(chain: _Chain, certificate: Certificate, now: float) -> bool:
    """Reports whether a certificate may be the next of a chain."""
    extensions = certificate.extensions
    if extensions.unhandled or not certificate.not_before <= now <= certificate.not_after:
        return False
    below = len(chain) - 1  # authorities between this one and the leaf
    if extensions.authority is not None and 0 <= extensions.path_length < below:
        return False
    has_constraints = extensions.permitted or extensions.excluded
    return not has_constraints or all(permits(extensions, child.extensions.names) for child in chain)


def _may_be_client(certificate: Certificate) -> bool:
    """No usages at all allow everything."""
    usages = certificate.extensions.usages
    return not usages or _CLIENT in usages or _ANY_USAGE in usages
