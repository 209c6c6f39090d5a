"""A pod's overhead, node selector and tolerations from its RuntimeClass.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/runtimeclass/admission.go.
"""

from collections.abc import Mapping
from copy import deepcopy
from fractions import Fraction

from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.admission.tolerations import merge_tolerations
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.quantity import Quantity, milli_value, parse, same_amounts

_UNDEFINED = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


class RuntimeClass(Handler):
    operations = frozenset({"CREATE"})
    resources = frozenset({PODS})

    async def admit(self, attributes: Attributes) -> None:
        spec, runtime_class = await self._find(attributes)
        if runtime_class is None:
            return
        overhead = runtime_class.get("overhead")
        if overhead is not None:
            fixed = overhead.get("podFixed") or {}
            if spec.get("overhead") and not same_amounts(fixed, spec["overhead"]):
                raise forbidden(attributes, _MISMATCH)
            if fixed:
                spec["overhead"] = _in_milli(fixed)
        if runtime_class.get("scheduling") is not None:
            _schedule(attributes, spec, runtime_class["scheduling"])

    async def validate(self, attributes: Attributes) -> None:
        spec, runtime_class = await self._find(attributes)
        overhead = (runtime_class or {}).get("overhead")
        if overhead is None:
            if _has_overhead(attributes, spec):
                raise forbidden(attributes, _UNDEFINED)
        elif not same_amounts(_in_milli(overhead.get("podFixed") or {}), spec.get("overhead") or {}):
            raise forbidden(attributes, _MISMATCH)

    async def _find(self, attributes: Attributes) -> tuple[Object, Object | None]:
        """The pod's spec and its class, None when it names none."""
        spec = (attributes.object or {}).get("spec") or {}
        name = spec.get("runtimeClassName")
        if name is None:
            return spec, None
        runtime_class = await self.look_up("runtimeclasses.node.k8s.io", "", name)
        if runtime_class is None:
            raise forbidden(attributes, f"pod rejected: RuntimeClass {go_quote(name)} not found")
        return spec, runtime_class


def _has_overhead(attributes: Attributes, spec: Object) -> bool:
    """An empty one counts."""
    return spec.get("overhead") is not None or ("spec", "overhead") in attributes.empties


def _in_milli(fixed: Mapping[str, str]) -> dict[str, str]:
    """Returns the amounts as a pod holds them: rounded up to thousandths."""
    parsed = {name: parse(str(text)) for name, text in fixed.items()}
    return {
        name: str(
            quantity
            if quantity.amount * 1000 == milli_value(quantity)
            else Quantity(Fraction(milli_value(quantity), 1000))
        )
        for name, quantity in parsed.items()
    }


def _schedule(attributes: Attributes, spec: Object, scheduling: Object) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        own = selector.setdefault(key, value)
        if own != value:
            text = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
            raise forbidden(attributes, f"conflict: {text}")
    if selector:
        spec["nodeSelector"] = selector
    tolerations = merge_tolerations(spec.get("tolerations") or (), deepcopy(scheduling.get("tolerations") or []))
    if tolerations:
        spec["tolerations"] = tolerations
