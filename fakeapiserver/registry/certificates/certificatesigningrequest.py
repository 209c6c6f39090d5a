"""Certificate signing requests.

Who approves says yes or no, who signs gives the certificate, and neither may do the other's or change what was asked for.

Upstream: pkg/registry/certificates/certificates/strategy.go, pkg/apis/certificates/validation/validation.go.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.clock import Clock, SystemClock
from fakeapiserver.registry.certificates import certificate_request, der
from fakeapiserver.registry.certificates.signer_name import signer_name_errors
from fakeapiserver.registry.core.field_formats import duplicate_errors
from fakeapiserver.registry.generic.printing import human_duration
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, age
from fakeapiserver.transport import x509_certificate

_SPEC: Final = Path("spec")
_REQUESTER: Final = ("username", "uid", "groups", "extra")
_CONDITIONS: Final = Path("status").child("conditions")
_CERTIFICATE: Final = Path("status").child("certificate")
_LEGACY: Final = "kubernetes.io/legacy-unknown"
_DECISIONS: Final = ("Approved", "Denied")
# What is either true or not there.
_FINAL: Final = (*_DECISIONS, "Failed")
# A line that begins with five hyphens ends a block: so many beginnings are read in linear time.
_PEM: Final = re.compile(
    rb"^-----BEGIN ([^\n]*?)-----[ \t\r]*\n((?:(?!-----)[^\n]*\n)*)^-----END \1-----[ \t\r]*$", re.MULTILINE
)
_NO_REQUEST: Final = "PEM block type must be CERTIFICATE REQUEST"
_SHORTEST: Final = 600
_USAGES: Final = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)


class CertificateSigningRequestStrategy(Strategy, kw_only=True):
    clock: Clock = SystemClock()

    def for_server(self, clock: Clock) -> "CertificateSigningRequestStrategy":
        return replace(self, clock=clock)

    def record_user(self, obj: Object, user: UserInfo) -> None:
        """The server sets the user who requests the certificate."""
        spec = {name: value for name, value in obj["spec"].items() if name not in _REQUESTER}
        identity = (user.name, user.uid, list(user.groups), {key: list(values) for key, values in user.extra.items()})
        obj["spec"] = spec | {name: value for name, value in zip(_REQUESTER, identity, strict=True) if value}

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        spec = obj["spec"]
        errors: ErrorList = []
        if problem := _request_problem(_decoded(spec.get("request"))):
            errors.append(field.invalid(_SPEC.child("request"), spec.get("request"), problem))
        if not spec.get("usages"):
            errors.append(field.required(_SPEC.child("usages")))
        seen: set[str] = set()
        for i, usage in enumerate(spec.get("usages") or ()):
            if usage not in _USAGES:
                errors.append(field.not_supported(_SPEC.child("usages").index(i), usage, _USAGES))
        for i, usage in enumerate(spec.get("usages") or ()):
            errors += duplicate_errors(usage, seen, _SPEC.child("usages").index(i))
        signer = spec.get("signerName") or ""
        if signer == _LEGACY:
            detail = "the legacy signerName is not allowed via this API version"
            errors.append(field.invalid(_SPEC.child("signerName"), signer, detail))
        else:
            errors += signer_name_errors(signer, _SPEC.child("signerName"))
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST:
            detail = "may not specify a duration less than 600 seconds (10 minutes)"
            errors.append(field.invalid(_SPEC.child("expirationSeconds"), seconds, detail))
        status = obj.get("status") or {}
        errors += _condition_errors(status.get("conditions") or ())
        if problem := _certificate_problem(_decoded(status.get("certificate"))):
            errors.append(field.invalid(_CERTIFICATE, "<certificate data>", problem))
        return errors

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Keeps earlier decisions as they are."""
        super().prepare_for_status_update(obj, old)
        conditions = (obj.get("status") or {}).get("conditions") or []
        for kind in _DECISIONS:
            kept, places = _of_kind(old, kind), [i for i, item in enumerate(conditions) if item.get("type") == kind]
            if len(kept) == len(places):
                for i, condition in zip(places, kept, strict=True):
                    conditions[i] = condition
        self._fill_times(obj, old)

    def prepare_for_subresource_update(self, subresource: str, obj: Object, old: Object) -> None:
        """An approval changes the conditions alone."""
        self._fill_times(obj, old)
        conditions = (obj.get("status") or {}).get("conditions")
        obj["spec"] = old["spec"]
        status = {name: value for name, value in (old.get("status") or {}).items() if name != "conditions"}
        obj["status"] = status | ({"conditions": conditions} if conditions else {})

    def _fill_times(self, obj: Object, old: Object) -> None:
        """A condition has changed now, unless it says when, or was there with the same status (populateConditionTimestamps)."""
        status, now = obj.get("status") or {}, rfc3339(self.clock.now())
        if not status.get("conditions"):
            return
        since: dict[tuple[str, str], str] = {}
        for row in (old.get("status") or {}).get("conditions") or ():
            if row.get("lastTransitionTime"):
                since.setdefault((row.get("type", ""), row.get("status", "")), row["lastTransitionTime"])
        filled = [
            {
                **row,
                "lastUpdateTime": row.get("lastUpdateTime") or now,
                "lastTransitionTime": row.get("lastTransitionTime")
                or since.get((row.get("type", ""), row.get("status", "")), now),
            }
            for row in status["conditions"]
        ]
        obj["status"] = {**status, "conditions": filled}

    def reset_paths(self, subresource: str) -> tuple[str, ...]:
        return ("spec", "status.certificate") if subresource == "approval" else super().reset_paths(subresource)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return _change_errors(obj, old, decides=False, signs=False)

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return _change_errors(obj, old, decides=False, signs=True)

    def validate_subresource_update(self, subresource: str, obj: Object, old: Object) -> ErrorList:
        return _change_errors(obj, old, decides=True, signs=False)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        seconds = spec.get("expirationSeconds")
        return [
            metadata(obj).get("name", ""),
            age(obj, now),
            spec.get("signerName") or NONE,
            spec.get("username", ""),
            NONE if seconds is None else human_duration(seconds),
            _condition(obj.get("status") or {}),
        ]


def _decoded(value: str | None) -> bytes:
    return base64.b64decode(value or "")


class _Block(Struct, frozen=True):
    """A block of a PEM file."""

    type: str
    has_headers: bool
    der: bytes


def _blocks(data: bytes) -> Iterator[_Block]:
    """The blocks of a PEM file. Blocks whose content isn't base64 are ignored (upstream: encoding/pem)."""
    for match in _PEM.finditer(data):
        headers, _, body = match[2].rpartition(b"\n\n") if b":" in match[2] else (b"", b"", match[2])
        with suppress(binascii.Error):
            content = base64.b64decode(body.translate(None, b" \t\r\n"), validate=True)
            yield _Block(match[1].decode("utf-8", "replace"), bool(headers), content)


def _request_problem(data: bytes) -> str:
    """The error in a PEM request, of which only the first block counts; empty if it is valid."""
    block = next(_blocks(data), None)
    if block is None or block.type != "CERTIFICATE REQUEST":
        return _NO_REQUEST
    return der.request_problem(block.der) or certificate_request.problem(block.der)


def _certificate_problem(data: bytes) -> str:
    """The error in a chain of PEM certificates; empty if it is valid or there is no certificate."""
    blocks = list(_blocks(data))
    if data and not blocks:
        return "must contain at least one CERTIFICATE PEM block"
    for block in blocks:
        if block.type != "CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {go_quote(block.type)}"
        if block.has_headers:
            return "no PEM block headers are permitted"
        if problem := _der_problem(block.der):
            return problem
    return ""


def _der_problem(rest: bytes) -> str:
    """The error in DER certificates that follow each other; empty if all are valid."""
    if not rest:
        return "found CERTIFICATE PEM block containing 0 certificates"
    while rest:
        problem, size = der.certificate_problem(rest)
        if problem:
            return problem
        try:
            x509_certificate.parsed(rest[:size])
        except ValueError as error:
            return str(error)
        rest = rest[size:]
    return ""


def _condition_errors(conditions: Sequence[Object]) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        kind, status, at = condition.get("type") or "", condition.get("status") or "", _CONDITIONS.index(i)
        allowed = ("True",) if kind in _FINAL else ("False", "True", "Unknown")
        if not kind:
            errors.append(field.required(at.child("type")))
        if not status:
            errors.append(field.required(at.child("status")))
        elif status not in allowed:
            errors.append(field.not_supported(at.child("status"), status, allowed))
        if kind in _DECISIONS and seen.intersection(_DECISIONS) - {kind}:
            detail = "Approved and Denied conditions are mutually exclusive"
            errors.append(field.invalid(_CONDITIONS, kind, detail))
        errors += duplicate_errors(kind, seen, at.child("type"))
        seen.add(kind)
    return errors


def _change_errors(obj: Object, old: Object, *, decides: bool, signs: bool) -> ErrorList:
    errors: ErrorList = []
    for kind in _FINAL:
        if len(_of_kind(obj, kind)) < len(_of_kind(old, kind)):
            detail = f"updates may not remove a condition of type {go_quote(kind)}"
            errors.append(field.forbidden(_CONDITIONS, detail))
    for kind in () if decides else _DECISIONS:
        before, after = _of_kind(old, kind), _of_kind(obj, kind)
        if len(after) > len(before):
            errors.append(field.forbidden(_CONDITIONS, f"updates may not add a condition of type {go_quote(kind)}"))
        elif len(after) == len(before) and after != before:
            errors.append(field.forbidden(_CONDITIONS, f"updates may not modify a condition of type {go_quote(kind)}"))
    certificate, given = ((item.get("status") or {}).get("certificate") or "" for item in (old, obj))
    if certificate != given and not signs:
        errors.append(field.forbidden(_CERTIFICATE, "updates may not set certificate content"))
    elif certificate != given and certificate:
        errors.append(field.forbidden(_CERTIFICATE, "updates may not modify existing certificate content"))
    return errors


def _of_kind(obj: Object, kind: str) -> list[Object]:
    return [item for item in (obj.get("status") or {}).get("conditions") or () if item.get("type") == kind]


def _condition(status: Object) -> str:
    kinds = {condition.get("type") for condition in status.get("conditions") or ()}
    state = next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")
    return state + (",Failed" if "Failed" in kinds else "") + (",Issued" if status.get("certificate") else "")
