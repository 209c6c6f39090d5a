"""The fields of a ResourceClaimSpec that feature gates drop (upstream: pkg/api/resourceclaimspec/util.go)."""

from collections.abc import Sequence

from fakeapiserver.apimachinery.meta import FieldPath

_REQUESTS = (("requests", "*", "exactly"), ("requests", "*", "firstAvailable", "*"))


def gated_claim_fields(*spec: str) -> dict[str, Sequence[FieldPath]]:
    """Strategy.gated_fields of the claim at the path `spec`."""
    devices = (*spec, "devices")
    return {
        "DRAAdminAccess": [(*devices, *request, "adminAccess") for request in (*_REQUESTS, ("requests", "*"))],
        "DRAConsumableCapacity": [
            (*devices, "constraints", "*", "distinctAttribute"),
            *((*devices, *request, "capacity") for request in _REQUESTS),
        ],
        "DRADerivedAttributes": [(*devices, *request, "derivedAttributes") for request in _REQUESTS],
        "DRADeviceTaints": [(*devices, *request, "tolerations") for request in _REQUESTS],
        "DRAPrioritizedList": [(*devices, "requests", "*", "firstAvailable")],
    }


def gated_claim_fields_since(*spec: str) -> dict[str | FieldPath, str]:
    """Strategy.gated_since of the claim at the path `spec`."""
    return {"DRADeviceTaints": "v1.35", (*spec, "devices", "constraints", "*", "distinctAttribute"): "v1.35"}
