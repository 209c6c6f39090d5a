"""Certificates that kubelets request for a pod. The signer answers once, in the status.

Upstream: pkg/registry/certificates/podcertificaterequest/strategy.go; what is valid is in `podcertificaterequest_validation.py`.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.clock import Clock, SystemClock
from fakeapiserver.registry.certificates import podcertificaterequest_validation
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.generic.strategy import Cells, Strategy, copy_field, keep_metadata
from fakeapiserver.registry.generic.table_cells import format_labels

_STATES: Final = ("Issued", "Denied", "Failed")


class PodCertificateRequestStrategy(Strategy, kw_only=True):
    clock: Clock = SystemClock()

    def for_server(self, clock: Clock) -> "PodCertificateRequestStrategy":
        return replace(self, clock=clock)

    def field_labels(self, namespaced: bool) -> Mapping[str, str]:
        """A field selector can't name the namespace."""
        return super().field_labels(namespaced=False)

    def reset_paths(self, subresource: str) -> tuple[str, ...]:
        """Until 1.36 upstream's storage doesn't ask the strategy: the sender of a status owns it, though it isn't kept."""
        if self.features.at_least("v1.37"):
            return ("spec", "metadata") if subresource == "status" else super().reset_paths(subresource)
        return super().reset_paths(subresource) if subresource else ()

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        copy_field("status", old, obj)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_status_update(obj, old)
        keep_metadata(obj, old)

    def validate(self, obj: Object) -> ErrorList:
        return podcertificaterequest_validation.spec_errors(obj["spec"])

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        if obj["spec"] == old["spec"]:
            return []
        return [field.invalid(Path("spec"), internal_form(obj["spec"], "PodCertificateRequestSpec"), IMMUTABLE)]

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return podcertificaterequest_validation.status_errors(
            obj.get("status") or {}, old.get("status") or {}, old["spec"], self.clock.now()
        )

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        conditions = (obj.get("status") or {}).get("conditions") or ()
        states = [row["type"] for row in conditions if row.get("type") in _STATES]
        return [
            metadata(obj).get("name", ""),
            *(spec.get(name, "") for name in ("podName", "serviceAccountName", "nodeName", "signerName")),
            states[-1] if states else "Pending",
            format_labels(spec.get("unverifiedUserAnnotations")),
        ]
