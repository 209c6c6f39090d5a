"""Certificate signing requests.

Upstream: pkg/registry/certificates/certificates/strategy.go.
"""

from dataclasses import dataclass

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.table_cells import NONE, age
from fakeapiserver.registry.generic.printing import human_duration
from fakeapiserver.registry.generic.strategy import Cells, Strategy


@dataclass(kw_only=True)
class CertificateSigningRequestStrategy(Strategy):
    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

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
