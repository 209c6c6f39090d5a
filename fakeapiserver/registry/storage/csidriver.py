"""CSI drivers.

Upstream: pkg/registry/storage/csidriver/strategy.go, pkg/apis/storage/validation/validation.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import duplicate_errors
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, UNSET, age

_FLAGS = ("podInfoOnMount", "storageCapacity", "requiresRepublish")
_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES: Final = ("Persistent", "Ephemeral")
_LEAST_PERIOD: Final = 10
_LEAST_EXPIRATION: Final = 600
_TOKENS_LOGGED = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging "
    "of tokens in volume attributes"
)


class CSIDriverStrategy(Strategy, kw_only=True):
    def raises_generation(self, obj: Object, old: Object) -> bool:
        """Upstream sets no first generation, but raises it."""
        return obj.get("spec") != old.get("spec")

    def default(self, obj: Object, version: str) -> None:
        spec = obj["spec"]
        spec.setdefault("attachRequired", True)
        for name in _FLAGS:
            spec.setdefault(name, False)
        if self.features.enabled("SELinuxMountReadWriteOncePod"):
            spec.setdefault("seLinuxMount", False)
        if self.features.enabled("VolumeLimitScaling"):
            spec.setdefault("preventPodSchedulingIfMissing", False)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def validate(self, obj: Object) -> ErrorList:
        return _driver_spec_errors(obj["spec"], Path("spec"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = self.validate(obj)
        for name, go_name in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
            errors += immutable_errors(obj["spec"].get(name), old["spec"].get(name), Path("spec").child(go_name))
        return errors

    def warnings_on_create(self, obj: Object) -> list[str]:
        spec = obj["spec"]
        might_help = self.features.enabled("CSIServiceAccountTokenSecrets")
        if might_help and spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
            return [_TOKENS_LOGGED]
        return []

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        same = obj["spec"].get("tokenRequests") == old["spec"].get("tokenRequests")
        return [] if same else self.warnings_on_create(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        requests = spec.get("tokenRequests")
        return [
            metadata(obj).get("name", ""),
            spec.get("attachRequired", True),
            spec.get("podInfoOnMount", False),
            spec.get("storageCapacity", False),
            UNSET if requests is None else ",".join(request.get("audience", "") for request in requests),
            spec.get("requiresRepublish", False),
            ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
            age(obj, now),
        ]


def _driver_spec_errors(spec: Object, path: Path) -> ErrorList:
    errors: ErrorList = []
    policy, modes = spec["fsGroupPolicy"], spec["volumeLifecycleModes"]
    if policy not in _POLICIES:
        errors.append(field.not_supported(path.child("fsGroupPolicy"), policy, _POLICIES))
    errors += _token_errors(spec.get("tokenRequests") or (), path.child("tokenRequests"))
    at = path.child("volumeLifecycleModes")
    errors += [field.not_supported(at, mode, _LIFECYCLES) for mode in modes if mode not in _LIFECYCLES]
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _LEAST_PERIOD:
        at = path.child("nodeAllocatableUpdatePeriodSeconds")
        errors.append(field.invalid(at, period, f"must be greater than or equal to {_LEAST_PERIOD} seconds"))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not spec.get("tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(field.invalid(path.child("serviceAccountTokenInSecrets"), in_secrets, detail))
    return errors


def _token_errors(requests: Sequence[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, request in enumerate(requests):
        at = path.index(i)
        if twice := duplicate_errors(request.get("audience", ""), seen, at.child("audience")):
            errors += twice
            continue
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < _LEAST_EXPIRATION:
            detail = "may not specify a duration less than 10 minutes"
            errors.append(field.invalid(at.child("expirationSeconds"), seconds, detail))
        if seconds is not None and seconds > 1 << 32:
            detail = "may not specify a duration larger than 2^32 seconds"
            errors.append(field.invalid(at.child("expirationSeconds"), seconds, detail))
    return errors
