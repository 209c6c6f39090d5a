"""Service accounts: of the secrets they list only the names count.

Upstream: pkg/registry/core/serviceaccount/strategy.go.
"""

from typing import Final

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountStrategy(Strategy, kw_only=True):
    def prepare_for_create(self, obj: Object) -> None:
        _clean_references(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        _clean_references(obj)

    def warnings_on_create(self, obj: Object) -> list[str]:
        if _MOUNTABLE not in (metadata(obj).get("annotations") or {}):
            return []
        text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        return [f"metadata.annotations[{_MOUNTABLE}]: {text}"]

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        known = _MOUNTABLE in (metadata(old).get("annotations") or {})
        return [] if known else self.warnings_on_create(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        name, old = metadata(obj).get("name", ""), age(obj, now)
        return [name, old] if self.features.at_least("v1.35") else [name, len(obj.get("secrets") or ()), old]


def _clean_references(obj: Object) -> None:
    if secrets := obj.get("secrets"):
        obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]
