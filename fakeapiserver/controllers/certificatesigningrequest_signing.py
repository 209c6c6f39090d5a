"""Approved requests get their certificate from the signer they name.

Upstream: pkg/controller/certificates/{signer/signer.go,authority}.
"""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from secrets import randbits
from typing import TYPE_CHECKING, Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.component_helpers.certificate_requests import (
    conditions_of,
    controller_of_requests,
    is_approved,
    kubelet_client_problem,
    kubelet_serving_problem,
    parse,
)
from fakeapiserver.component_helpers.cluster_signing import (
    KUBE_APISERVER_CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY_UNKNOWN,
)
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import CERTIFICATE_SIGNING_REQUESTS
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.transport.key_pair import KeyPair

if TYPE_CHECKING:
    from cryptography import x509

_BACKDATE: Final = timedelta(minutes=5)
# What lives shorter than this isn't cut short for being backdated.
_SHORT: Final = timedelta(hours=8)
_MIN_SECONDS: Final = 600.0
_KEY_USAGES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
# In the order in which Go writes them.
_EXTENDED_KEY_USAGES: Final = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}
_CLIENT_USAGES: Final = ("digital signature", "key encipherment", "client auth")
# Parts of a subject, in the order in which Go writes them; values of one part stand together.
_SUBJECT: Final = ("2.5.4.6", "2.5.4.10", "2.5.4.11", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.17", "2.5.4.3", "2.5.4.5")
_SINGLE: Final = ("2.5.4.3", "2.5.4.5")
_PRINTABLE: Final = re.compile(r"[A-Za-z0-9 '()+,./:=?-]*")

Problem = Callable[["x509.CertificateSigningRequest", Sequence[str]], str]


class Signer:
    """Signs the requests for one signer name. `problem` says why a request is refused."""

    def __init__(self, context: ControllerContext, name: str, authority: KeyPair, problem: Problem) -> None:
        self._client = context.client
        self._clock = context.clock
        self._longest = context.configuration.cluster_signing_duration
        self._name = name
        self._authority = authority
        self._problem = problem

    async def handle(self, request: Object) -> None:
        if not is_approved(request) or _has_failed(request) or request["spec"]["signerName"] != self._name:
            return
        parsed, now = parse(request), self._clock.now()
        usages: Sequence[str] = request["spec"].get("usages") or ()
        if problem := self._problem(parsed, usages):
            condition = {
                "type": "Failed",
                "status": "True",
                "reason": "SignerValidationFailure",
                "message": problem,
                "lastUpdateTime": rfc3339(now),
            }
            request["status"]["conditions"] = [*conditions_of(request), condition]
        else:
            lifetime = self._lifetime(request["spec"].get("expirationSeconds"))
            certificate = sign(parsed, self._authority, usages, datetime.fromtimestamp(now, UTC), lifetime)
            request["status"]["certificate"] = base64.b64encode(certificate).decode()
        await self._client.resource(CERTIFICATE_SIGNING_REQUESTS).update_status(request)

    def _lifetime(self, wanted: int | None) -> timedelta:
        seconds = self._longest if wanted is None or wanted > self._longest else max(_MIN_SECONDS, float(wanted))
        return timedelta(seconds=seconds)


def sign(
    parsed: "x509.CertificateSigningRequest",
    authority: KeyPair,
    usages: Sequence[str],
    now: datetime,
    lifetime: timedelta,
) -> bytes:
    """A certificate (PEM) of the request's key and names, whatever else it asks for. ValueError: it isn't signed with its key,
    or the authority's time is over."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

    if not parsed.is_signature_valid:
        raise ValueError("error auto signing csr: unable to verify certificate request signature")
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    key: Any = load_pem_private_key(authority.key, None)
    issuer_ends = issuer.not_valid_after_utc
    if now >= issuer_ends:
        raise ValueError(
            f"error auto signing csr: refusing to sign a certificate that expired in the past: NotAfter={issuer_ends}"
        )
    end = now + lifetime if lifetime < _SHORT else now + lifetime - _BACKDATE
    public: Any = parsed.public_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(_subject(parsed.subject)))
        .issuer_name(issuer.subject)
        .public_key(public)
        .serial_number(randbits(127) + 1)
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(min(end, issuer_ends))
    )
    for extension, critical in _extensions(parsed, issuer, usages):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key, _hash(key)).public_bytes(Encoding.PEM)


def _extensions(
    parsed: "x509.CertificateSigningRequest", issuer: "x509.Certificate", usages: Sequence[str]
) -> Iterator[tuple["x509.ExtensionType", bool]]:
    from cryptography import x509

    used = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if used:
        # Without key agreement the last two say nothing.
        flags = {name: name in used for name in _KEY_USAGES.values()}
        if not flags["key_agreement"]:
            flags |= {"encipher_only": False, "decipher_only": False}
        yield x509.KeyUsage(**flags), True
    order = [*_EXTENDED_KEY_USAGES]
    extended = sorted((usage for usage in usages if usage in _EXTENDED_KEY_USAGES), key=order.index)
    if extended:
        oids = dict.fromkeys(_EXTENDED_KEY_USAGES[usage] for usage in extended)
        yield x509.ExtendedKeyUsage([x509.ObjectIdentifier(oid) for oid in oids]), False
    yield x509.BasicConstraints(ca=False, path_length=None), True
    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        yield x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own), False
    except x509.ExtensionNotFound:
        pass
    try:
        names = [*parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value]
        kinds = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)
        ordered = [name for kind in kinds for name in names if isinstance(name, kind)]
        if ordered:
            yield x509.SubjectAlternativeName(ordered), not [*parsed.subject]
    except x509.ExtensionNotFound:
        pass


def _subject(subject: "x509.Name") -> Iterator["x509.RelativeDistinguishedName"]:
    from cryptography import x509

    for dotted in _SUBJECT:
        attributes = subject.get_attributes_for_oid(x509.ObjectIdentifier(dotted))
        if attributes:
            written = [_as_go_writes(attribute) for attribute in attributes]
            yield x509.RelativeDistinguishedName(written[-1:] if dotted in _SINGLE else dict.fromkeys(written))


def _as_go_writes(attribute: "x509.NameAttribute[str | bytes]") -> "x509.NameAttribute[str | bytes]":
    """A printable string where that is enough."""
    from cryptography import x509
    from cryptography.x509.name import _ASN1Type

    value = str(attribute.value)
    kind = _ASN1Type.PrintableString if _PRINTABLE.fullmatch(value) else _ASN1Type.UTF8String
    return x509.NameAttribute(attribute.oid, value, kind)


def _hash(key: Any) -> Any:
    """By the size of the authority's curve; SHA-256 for RSA; Ed25519 has its own."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    size = key.curve.key_size if isinstance(key, ec.EllipticCurvePrivateKey) else 256
    return {384: hashes.SHA384(), 521: hashes.SHA512()}.get(size, hashes.SHA256())


def _has_failed(request: Object) -> bool:
    return any(
        condition["type"] == "Failed" and condition.get("status", "") in ("", "True")
        for condition in conditions_of(request)
    )


def _client_problem(parsed: "x509.CertificateSigningRequest", usages: Sequence[str]) -> str:
    for usage in usages:
        if usage not in _CLIENT_USAGES:
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def _no_problem(parsed: "x509.CertificateSigningRequest", usages: Sequence[str]) -> str:
    return ""


_PROBLEMS: Final[dict[str, Problem]] = {
    KUBELET_SERVING: kubelet_serving_problem,
    KUBELET_CLIENT: kubelet_client_problem,
    KUBE_APISERVER_CLIENT: _client_problem,
    LEGACY_UNKNOWN: _no_problem,
}


def new(context: ControllerContext) -> Sequence[Controller]:
    """Returns a controller for each signer that has an authority."""
    return [
        controller_of_requests(
            context,
            Signer(context, name, authority, _PROBLEMS[name]).handle,
            name=f"csrsigning-{name.rpartition('/')[2]}",
        )
        for name, authority in context.signing.authorities.items()
    ]
