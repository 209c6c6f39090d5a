"""Validation of PodCertificateRequests and of their status.

Upstream: pkg/apis/certificates/validation/validation.go.
"""

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import OMIT, ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.certificates.pem import Block, blocks
from fakeapiserver.registry.certificates.signer_name import signer_name_errors
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.generic.conditions import conditions_errors
from fakeapiserver.transport import x509_certificate

if TYPE_CHECKING:
    from cryptography import x509

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_STUB: Final = _SPEC.child("stubPKCS10Request")
_KEY: Final = _SPEC.child("pkixPublicKey")
_PROOF: Final = _SPEC.child("proofOfPossession")
_CHAIN: Final = _STATUS.child("certificateChain")
_MAX_UID: Final = 128
_MAX_KEY: Final = 10 * 1024
_MAX_CHAIN: Final = 100 * 1024
SHORTEST: Final = 60 * 60
LONGEST: Final = 91 * 24 * 60 * 60
# Of signers of Kubernetes' own.
LONGEST_OWN: Final = 24 * 60 * 60
_CURVES: Final = ("secp256r1", "secp384r1", "secp521r1")
_GO_CURVES: Final = {"secp224r1": "P-224"}
_MODULI: Final = (3072, 4096)
_STATES: Final = ("Issued", "Denied", "Failed")
_ONE_WAY: Final = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
_ONE_STATE: Final = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
_SETTLED: Final = "immutable after PodCertificateRequest is issued, denied, or failed"
_NOTHING_ELSE: Final = "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
_NO_ANSWER: Final = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
_UNKNOWN_KEY: Final = "unknown public key type; supported types are Ed25519, ECDSA, and RSA"
_MODULUS: Final = "RSA keys must have modulus size 3072 or 4096"
# Seconds
_MINUTE: Final = 60
_SKEW: Final = 5 * _MINUTE
_MARGIN: Final = 10 * _MINUTE


def spec_errors(spec: Object) -> ErrorList:
    signer = spec.get("signerName", "")
    errors = signer_name_errors(signer, _SPEC.child("signerName"))
    errors += user_annotation_errors(
        spec.get("unverifiedUserAnnotations") or {}, _SPEC.child("unverifiedUserAnnotations")
    )
    for holder in ("pod", "serviceAccount", "node"):
        errors += name_errors(spec.get(f"{holder}Name", ""), names.is_dns1123_subdomain, _SPEC.child(f"{holder}Name"))
        uid, path = spec.get(f"{holder}UID", ""), _SPEC.child(f"{holder}UID")
        if not uid:
            errors.append(field.invalid(path, uid, "must not be empty"))
        elif len(uid.encode()) > _MAX_UID:
            errors.append(field.too_long(path, _MAX_UID))
    seconds, at = spec.get("maxExpirationSeconds"), _SPEC.child("maxExpirationSeconds")
    if seconds is None:
        return [*errors, field.required(at, "must be set")]
    longest = LONGEST_OWN if is_kubernetes_signer(signer) else LONGEST
    if not SHORTEST <= seconds <= longest:
        errors.append(field.invalid(at, seconds, f"must be in the range [{SHORTEST}, {longest}]"))
    stub, key, proof = (spec.get(name) or "" for name in ("stubPKCS10Request", "pkixPublicKey", "proofOfPossession"))
    if stub and not key and not proof:
        return errors + _stub_errors(base64.b64decode(stub))
    if key and proof and not stub:
        return errors + _key_errors(spec)
    return [*errors, field.invalid(_SPEC, OMIT, _ONE_WAY)]


def is_kubernetes_signer(signer: str) -> bool:
    host = signer.partition("/")[0]
    return host == "kubernetes.io" or host.endswith(".kubernetes.io")


def user_annotation_errors(annotations: Mapping[str, str], path: Path) -> ErrorList:
    errors: ErrorList = []
    for key in annotations:
        lower = key.lower()
        if not lower:
            errors.append(field.required(path))
        elif problems := names.is_qualified_name(lower):
            errors += [field.invalid(path, lower, problem) for problem in problems]
        elif "/" not in lower:
            errors.append(field.invalid(path, lower, 'must be a domain-prefixed key (such as "acme.io/foo")'))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > names.MAX_ANNOTATIONS_BYTES:
        errors.append(field.too_long(path, names.MAX_ANNOTATIONS_BYTES))
    return errors


def _stub_errors(request: bytes) -> ErrorList:
    """The errors in a certificate request of which only the key and the signature matter."""
    if len(request) > _MAX_KEY:
        return [field.too_long(_STUB, _MAX_KEY)]
    try:
        csr = x509.load_der_x509_csr(request)
        key: Any = csr.public_key()
    except UnsupportedAlgorithm:
        return [field.invalid(_STUB, OMIT, _UNKNOWN_KEY)]
    except (ValueError, x509.InvalidVersion):
        return [field.invalid(_STUB, OMIT, "must be a valid PKCS#10 CSR")]
    if problem := _key_problem(key, "elliptic public keys must use curve P256, P384, or P521"):
        return [field.invalid(_STUB, problem[0], problem[1])]
    try:
        valid = csr.is_signature_valid
    except (InvalidSignature, UnsupportedAlgorithm):
        valid = False
    return [] if valid else [field.invalid(_STUB, OMIT, "invalid signature")]


def _key_problem(key: Any, curves: str) -> tuple[Any, str] | None:
    """The value that the error for an unsupported key shows, and the reason; None for a supported key."""
    if isinstance(key, ed25519.Ed25519PublicKey):
        return None
    if isinstance(key, ec.EllipticCurvePublicKey):
        curve = key.curve.name
        return None if curve in _CURVES else (f"curve {_GO_CURVES.get(curve, curve)}", curves)
    if isinstance(key, rsa.RSAPublicKey):
        size = (key.key_size + 7) // 8 * 8
        return None if size in _MODULI else (f"{size}-bit modulus", _MODULUS)
    return (OMIT, _UNKNOWN_KEY)


def _key_errors(spec: Object) -> ErrorList:
    """The errors in a public key, and in the proof that the client has its private key."""
    key_type, key, proof = (
        spec["pkixPublicKey"],
        *(base64.b64decode(spec[n]) for n in ("pkixPublicKey", "proofOfPossession")),
    )
    if len(key) > _MAX_KEY:
        return [field.too_long(_KEY, _MAX_KEY)]
    if len(proof) > _MAX_KEY:
        return [field.too_long(_PROOF, _MAX_KEY)]
    try:
        public: Any = load_der_public_key(key)
    except (ValueError, UnsupportedAlgorithm):
        return [field.invalid(_KEY, key_type, "must be a valid PKIX-serialized public key")]
    if problem := _key_problem(public, "elliptic public keys must use curve P256 or P384"):
        return [field.invalid(_KEY, key_type if problem[0] is OMIT else problem[0], problem[1])]
    try:
        _verify(public, spec.get("podUID", "").encode(), proof)
    except InvalidSignature:
        return [field.invalid(_PROOF, OMIT, "could not verify proof-of-possession signature")]
    return []


def _verify(key: Any, signed: bytes, signature: bytes) -> None:
    """InvalidSignature."""
    if isinstance(key, rsa.RSAPublicKey):
        scheme = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.AUTO)
        key.verify(signature, signed, scheme, hashes.SHA256())
    elif isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, signed, ec.ECDSA(hashes.SHA256()))
    else:
        key.verify(signature, signed)


def status_errors(status: Object, old: Object, spec: Object, now: float) -> ErrorList:
    """The errors in the status, at a time in seconds."""
    conditions: Sequence[Object] = status.get("conditions") or ()
    errors = _state_errors(conditions) + conditions_errors(conditions, _STATUS.child("conditions"))
    if errors:
        return errors
    if _states(old):
        return [] if status == old else [field.invalid(_STATUS, OMIT, _SETTLED)]
    states = _states(status)
    if states & {"Denied", "Failed"}:
        rest = [name for name, value in status.items() if name != "conditions" and value]
        return [field.invalid(_STATUS, OMIT, _NOTHING_ELSE)] if rest else []
    if "Issued" in states:
        return _issued_errors(status, spec, now)
    return [] if status == old else [field.invalid(_STATUS, OMIT, _NO_ANSWER)]


def _states(status: Object) -> set[str]:
    return {row["type"] for row in status.get("conditions") or () if row["type"] in _STATES and row["status"] == "True"}


def _state_errors(conditions: Sequence[Object]) -> ErrorList:
    errors, known, path = ErrorList(), 0, _STATUS.child("conditions")
    for i, condition in enumerate(conditions):
        kind, status, at = condition.get("type", ""), condition.get("status", ""), path.child(f"[{i}]")
        if kind not in _STATES:
            errors.append(field.not_supported(at.child("type"), kind, _STATES))
            continue
        known += 1
        if known > 1:
            errors.append(field.invalid(at.child("type"), kind, _ONE_STATE))
        if status != "True":
            errors.append(field.not_supported(at.child("status"), status, ("True",)))
    return errors


def _issued_errors(status: Object, spec: Object, now: float) -> ErrorList:
    chain = status.get("certificateChain", "")
    if len(chain.encode()) > _MAX_CHAIN:
        return [field.too_long(_CHAIN, _MAX_CHAIN)]
    pem_blocks = list(blocks(chain))
    if not pem_blocks:
        detail = "issued certificate chain must contain at least one certificate"
        return [field.invalid(_CHAIN, chain, detail)]
    if pem_blocks[0].kind != "CERTIFICATE":
        detail = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"
        return [field.invalid(_CHAIN, chain, detail)]
    leaf = _certificate(pem_blocks[0])
    if leaf is None:
        return [field.invalid(_CHAIN, chain, "leaf certificate does not parse as valid X.509")]
    errors = _leaf_name_errors(leaf)
    if not _is_for_key(leaf, spec):
        detail = "leaf certificate was not issued to the requested public key"
        return [*errors, field.invalid(_CHAIN, chain, detail)]
    errors += [
        field.required(_STATUS.child(name), f"must be present and {what}")
        for name, what in (
            ("notBefore", "consistent with the issued certificate"),
            ("notAfter", "consistent with the issued certificate"),
            ("beginRefreshAt", "in the range [notbefore+10min, notafter-10min]"),
        )
        if not status.get(name)
    ]
    return errors or _time_errors(status, leaf, spec, now) or _rest_errors(chain, pem_blocks[1:])


def _certificate(block: Block) -> "x509.Certificate | None":
    try:
        return x509_certificate.parsed(block.content)
    except ValueError:
        return None


def _leaf_name_errors(leaf: "x509.Certificate") -> ErrorList:
    try:
        alternatives = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    errors: ErrorList = []
    for name in alternatives.get_values_for_type(x509.DNSName):
        if not name:
            errors.append(field.invalid(_CHAIN, name, "leaf certificate should not contain empty DNSName"))
        if ".." in name:
            errors.append(field.invalid(_CHAIN, name, "leaf certificate's DNSName should not contain '..'"))
        if name.startswith(".") or name.endswith("."):
            errors.append(field.invalid(_CHAIN, name, "leaf certificate's DNSName should not start or end with '.'"))
    return errors


def _is_for_key(leaf: "x509.Certificate", spec: Object) -> bool:
    if stub := spec.get("stubPKCS10Request"):
        public_key: Any = x509.load_der_x509_csr(base64.b64decode(stub)).public_key()
    else:
        public_key = load_der_public_key(base64.b64decode(spec["pkixPublicKey"]))
    return bool(leaf.public_key() == public_key)


def _time_errors(status: Object, leaf: "x509.Certificate", spec: Object, now: float) -> ErrorList:
    """The first error in the times at which the certificate is valid."""
    begins, ends, refresh = (
        datetime.fromisoformat(status[name]).timestamp() for name in ("notBefore", "notAfter", "beginRefreshAt")
    )
    first, last = leaf.not_valid_before_utc.timestamp(), leaf.not_valid_after_utc.timestamp()
    life, longest = last - first, spec.get("maxExpirationSeconds") or 0
    checks: list[tuple[bool, str, str]] = [
        (begins != first, "notBefore", "must be set to the NotBefore time encoded in the leaf certificate"),
        (abs(begins - now) >= _SKEW, "notBefore", "must be set to within 5 minutes of kube-apiserver's current time"),
        (ends != last, "notAfter", "must be set to the NotAfter time encoded in the leaf certificate"),
        (life < SHORTEST, "", "leaf certificate lifetime must be >= 1 hour"),
        (life > longest, "", f"leaf certificate lifetime must be <= spec.maxExpirationSeconds ({longest})"),
        (refresh < begins + _MARGIN, "beginRefreshAt", "must be at least 10 minutes after status.notBefore"),
        (refresh > ends - _MARGIN, "beginRefreshAt", "must be at least 10 minutes before status.notAfter"),
    ]
    for wrong, name, detail in checks:
        if wrong and name:
            return [field.invalid(_STATUS.child(name), status[name], detail)]
        if wrong:
            return [field.invalid(_CHAIN, int(life * 1_000_000_000), detail)]
    return []


def _rest_errors(chain: str, rest: Sequence[Block]) -> ErrorList:
    for block in rest:
        if block.kind != "CERTIFICATE":
            detail = "issued certificate chain must consist entirely of CERTFICATE PEM blocks"
            return [field.invalid(_CHAIN, chain, detail)]
        if _certificate(block) is None:
            return [field.invalid(_CHAIN, chain, "intermediate certificate does not parse as valid X.509")]
    return []
