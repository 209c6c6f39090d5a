"""The ranges that addresses of services come from.

Upstream: pkg/registry/networking/servicecidr/strategy.go, pkg/apis/networking/validation/validation.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import canonical_cidr_errors, is_cidr
from fakeapiserver.registry.generic.label_selector import IMMUTABLE
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_CIDRS: Final = Path("spec").child("cidrs")
_MAX_CIDRS: Final = 2
_WIPING: Final = "ServiceCIDRStatusFieldWiping"
_ONE_OF_EACH: Final = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


class ServiceCIDRStrategy(Strategy, kw_only=True):
    def __post_init__(self) -> None:
        if not self.features.enabled(_WIPING):
            self.reset_fields = ()

    def prepare_for_create(self, obj: Object) -> None:
        if self.features.enabled(_WIPING):
            obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        cidrs = obj["spec"].get("cidrs") or []
        if not cidrs:
            return [field.required(_CIDRS, "at least one CIDR required")]
        if len(cidrs) > _MAX_CIDRS:
            return [
                field.invalid(_CIDRS, internal_form(obj["spec"], "ServiceCIDRSpec"), "may only hold up to 2 values")
            ]
        errors = [error for i, cidr in enumerate(cidrs) for error in canonical_cidr_errors(cidr, _CIDRS.index(i))]
        families = [":" in cidr for cidr in cidrs if is_cidr(cidr)]
        if len(families) == _MAX_CIDRS and families[0] == families[1]:
            errors.append(field.invalid(_CIDRS, cidrs, _ONE_OF_EACH))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        """The errors in an update, which can only add a second range."""
        now, then = obj["spec"].get("cidrs"), old["spec"].get("cidrs") or []
        grows = len(now or ()) == _MAX_CIDRS and len(then) == 1
        if len(now or ()) == len(then) or grows:
            pairs = enumerate(zip(now or (), then, strict=False))
            errors = [field.invalid(_CIDRS.index(i), new, IMMUTABLE) for i, (new, before) in pairs if new != before]
            return errors + (self.validate(obj) if grows else [])
        return [field.invalid(_CIDRS, now, IMMUTABLE)]

    def table_row(self, obj: Object, now: float) -> Cells:
        cidrs = (obj.get("spec") or {}).get("cidrs") or ()
        return [metadata(obj).get("name", ""), ",".join(cidrs), age(obj, now)]
