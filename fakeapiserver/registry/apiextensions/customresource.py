"""Custom resources: what they do beside their schema.

Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/{strategy.go,status_strategy.go,validator.go}.
"""

from dataclasses import dataclass
from typing import Any

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.strategy import Strategy

_GO_TYPES = {str: "string", bool: "bool", float: "float64", list: "[]interface {}", dict: "map[string]interface {}"}
_MAX_INT32 = 2**31 - 1


@dataclass(kw_only=True)
class CustomResourceStrategy(Strategy):
    """`scale_path` is where the scale subresource finds the wanted replicas (`.spec.replicas`), empty without one."""

    scale_path: str = ""

    def reset_paths(self, subresource: str) -> tuple[str, ...]:
        """A status write can't own spec nor anything of metadata."""
        return ("spec", "metadata") if subresource == "status" else super().reset_paths(subresource)

    def validate(self, obj: Object) -> ErrorList:
        return self._scale_errors(obj) if self.scale_path else []

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return self.validate(obj)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Only status and managedFields come from the request; metadata stays as it is stored."""
        owners = metadata(obj).get("managedFields")
        kept = dict(old)
        if "status" in obj:
            kept["status"] = obj["status"]
        else:
            kept.pop("status", None)
        revision = metadata(obj).get("resourceVersion")
        obj.clear()
        obj.update(kept)
        obj["metadata"] = {**metadata(old), "managedFields": owners, "resourceVersion": revision}
        for name in ("managedFields", "resourceVersion"):
            if obj["metadata"][name] is None:
                del obj["metadata"][name]

    def _scale_errors(self, obj: Object) -> ErrorList:
        value: Any = obj
        for part in self.scale_path.lstrip(".").split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return []
        if isinstance(value, bool) or not isinstance(value, int):
            shown = value if isinstance(value, str) else field.go_value(value)
            detail = (
                f"{self.scale_path} accessor error: {shown} is of the type {_GO_TYPES.get(type(value))}, expected int64"
            )
            return [field.invalid(self.scale_path, 0, detail)]
        if value < 0:
            return [field.invalid(self.scale_path, value, "should be a non-negative integer")]
        if value > _MAX_INT32:
            detail = f"should be less than or equal to {_MAX_INT32}"
            return [field.invalid(self.scale_path, value, detail)]
        return []
