"""Certificate signing requests.

Upstream: pkg/registry/certificates/certificates/strategy.go.
"""

from dataclasses import dataclass
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.registry.core.field_formats import duplicate_errors
from fakeapiserver.registry.core.table_cells import NONE, age
from fakeapiserver.registry.generic.printing import human_duration
from fakeapiserver.registry.generic.strategy import Cells, Strategy

_SPEC: Final = Path("spec")
_REQUESTER: Final = ("username", "uid", "groups", "extra")
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


@dataclass(kw_only=True)
class CertificateSigningRequestStrategy(Strategy):
    def record_user(self, obj: Object, user: UserInfo) -> None:
        """Who asks for the certificate is for the server to say."""
        spec = {name: value for name, value in obj["spec"].items() if name not in _REQUESTER}
        found = (user.name, user.uid, list(user.groups), {key: list(values) for key, values in user.extra.items()})
        obj["spec"] = spec | {name: value for name, value in zip(_REQUESTER, found, strict=True) if value}

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        spec = obj["spec"]
        errors: ErrorList = [] if spec.get("request") else [field.invalid(_SPEC.child("request"), None, _NO_REQUEST)]
        if not spec.get("usages"):
            errors.append(field.required(_SPEC.child("usages")))
        seen: set[str] = set()
        for i, usage in enumerate(spec.get("usages") or ()):
            if usage not in _USAGES:
                errors.append(field.not_supported(_SPEC.child("usages").index(i), usage, _USAGES))
        for i, usage in enumerate(spec.get("usages") or ()):
            errors += duplicate_errors(usage, seen, _SPEC.child("usages").index(i))
        if not spec.get("signerName"):
            errors.append(field.required(_SPEC.child("signerName")))
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST:
            detail = "may not specify a duration less than 600 seconds (10 minutes)"
            errors.append(field.invalid(_SPEC.child("expirationSeconds"), seconds, detail))
        return errors

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


def _condition(status: Object) -> str:
    kinds = {condition.get("type") for condition in status.get("conditions") or ()}
    found = next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")
    return found + (",Failed" if "Failed" in kinds else "") + (",Issued" if status.get("certificate") else "")
