"""Limit ranges: what containers are limited to completes what they are given.

Upstream: pkg/registry/core/limitrange/strategy.go, pkg/apis/core/v1/defaults.go (SetDefaults_LimitRangeItem).
"""

import uuid
from dataclasses import dataclass
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.resource_list import round_up_resources
from fakeapiserver.registry.generic.strategy import Strategy

_LISTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


@dataclass(kw_only=True)
class LimitRangeStrategy(Strategy):
    def default(self, obj: Object, version: str) -> None:
        for item in (obj.get("spec") or {}).get("limits") or ():
            if item.get("type") == "Container":
                _default_item(item)
            round_up_resources(item, _LISTS)

    def prepare_for_create(self, obj: Object) -> None:
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = str(uuid.uuid4())


def _default_item(item: Object) -> None:
    """The limit is the most there may be, the request is the limit, or else the least there must be."""
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests
