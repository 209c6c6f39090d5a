"""ResourceQuotas: a write that would use more than is left is refused, one that fits is charged.

The usage so far is in each quota's status, which a controller computes first: until then no object of a covered kind
can be created.
Usage is charged by a compare-and-swap, which is checked again after a lost race, so that concurrent writers never exceed the quota.

Upstream: k8s.io/apiserver/pkg/admission/plugin/resourcequota/{admission,controller}.go.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from fakeapiserver.admission.handler import Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.apimachinery.errors import StatusError, aggregated, status_error
from fakeapiserver.apimachinery.field import Path, required
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.quantity import ZERO
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind, check_named
from fakeapiserver.apis.pod_resources import ResourceList, add, resource_list
from fakeapiserver.apis.quota.evaluators import (
    CLAIMS,
    IGNORED,
    PODS,
    RESOURCE_CLAIMS,
    SERVICES,
    Evaluator,
    evaluator_of,
)
from fakeapiserver.apis.quota.scopes import is_terminating, selectors_of

_QUOTAS: Final = "resourcequotas"
_TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "LimitedResource": {
        "apiGroup": "string",
        "resource": "string",
        "matchContains": "[]string",
        "matchScopes": "[]v1.ScopedResourceSelectorRequirement",
    },
    "v1.ScopedResourceSelectorRequirement": {"scopeName": "string", "operator": "string", "values": "[]string"},
}
_KINDS: Final = {
    name: ConfigKind(name, versions, {**_TYPES, name: {"limitedResources": "[]LimitedResource"}})
    for name, versions in (
        ("ResourceQuotaConfiguration", ("apiserver.config.k8s.io/v1",)),
        ("Configuration", ("resourcequota.admission.k8s.io/v1beta1",)),
    )
}


class _Charge(NamedTuple):
    """The usage that a write adds to a quota."""

    quota: str
    usage: ResourceList


class ResourceQuota(Handler):
    subresources = True

    def __init__(self, initializer: Initializer) -> None:
        super().__init__(initializer)
        self._limited = _limited_resources(initializer.configuration.get("ResourceQuota"))
        # One write of a namespace is charged at a time; a lock exists as long as it is used.
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    async def validate(self, attributes: Attributes) -> None:
        resource = attributes.resource.group_resource
        if not attributes.namespace or resource in IGNORED or resource == ("", "namespaces"):
            return
        quotas = await self.look_for(_QUOTAS, attributes.namespace)
        if not quotas and not self._limited:
            return
        if not _handles(resource, attributes):
            return
        evaluator = evaluator_of(resource, self.initializer.getter)
        if attributes.dry_run:
            self._charges(attributes, evaluator, quotas)
            return
        lock = self._locks.setdefault(attributes.namespace, asyncio.Lock())
        # No other write comes between the charge to one quota and the check of the next.
        async with lock:
            quotas = self.initializer.getter.list(_QUOTAS, attributes.namespace)
            for charge in self._charges(attributes, evaluator, quotas):
                await self._charge(attributes, charge)

    # ---------------------------------------------------------------- checking

    def _charges(self, attributes: Attributes, evaluator: Evaluator, quotas: list[Object]) -> list[_Charge]:
        """Returns the charges to each quota. Raises StatusError 403 if a quota is exceeded."""
        obj, now = attributes.object or {}, self.initializer.clock.now()
        concerned = []
        for quota in quotas:
            names = [name for name in _hard(quota) if evaluator.knows(name)]
            if not names or not all(evaluator.matches(selector, obj) for selector in selectors_of(quota)):
                continue
            if complaint := evaluator.complaint(obj, names):
                raise forbidden(attributes, f"failed quota: {_name(quota)}: {complaint}")
            if not all(name in _used(quota) for name in names):
                shown = ",".join(sorted(names))
                raise forbidden(attributes, f"status unknown for quota: {_name(quota)}, resources: {shown}")
            concerned.append((quota, names))
        usage = evaluator.usage(obj, now)
        if negative := sorted(name for name, quantity in usage.items() if quantity < ZERO):
            raise forbidden(attributes, f"quota usage is negative for resource(s): {','.join(negative)}")
        old = attributes.old_object if attributes.operation == "UPDATE" else None
        growth = usage if old is None else _more(usage, evaluator.usage(old, now))
        deltas = []
        for quota, _ in concerned:
            was_counted = old is not None and all(evaluator.matches(selector, old) for selector in selectors_of(quota))
            delta = {name: quantity for name, quantity in (growth if was_counted else usage).items() if quantity.amount}
            if delta:
                deltas.append((quota, delta))
        if not deltas and (concerned or not any(quantity.amount for quantity in growth.values())):
            return []
        covered = {name for _, names in concerned for name in names}
        self._check_limited(attributes, evaluator, usage, covered, quotas)
        charges = []
        for quota, delta in deltas:
            hard = _hard(quota)
            charge = _Charge(_name(quota), {name: amount for name, amount in delta.items() if name in hard})
            self._check(attributes, quota, charge)
            if charge.usage:
                charges.append(charge)
        return charges

    def _check_limited(
        self,
        attributes: Attributes,
        evaluator: Evaluator,
        usage: ResourceList,
        covered: set[str],
        quotas: Iterable[Object],
    ) -> None:
        """Refuses resources that may only be used under a quota, if no quota covers them."""
        if not self._limited:
            return
        obj, resource = attributes.object or {}, attributes.resource.group_resource
        words = [
            word
            for limited in self._limited
            if (limited.get("apiGroup", ""), limited.get("resource")) == resource
            for word in limited.get("matchContains") or ()
        ]
        bare = sorted(
            name
            for name, quantity in usage.items()
            if quantity > ZERO and name not in covered and any(word in name for word in words)
        )
        if bare:
            raise forbidden(attributes, f"insufficient quota to consume: {','.join(bare)}")
        have = {
            selector["scopeName"]
            for quota in quotas
            for selector in selectors_of(quota)
            if evaluator.matches(selector, obj)
        }
        missing = [
            scope
            for limited in self._limited
            for scope in limited.get("matchScopes") or ()
            if evaluator.matches(scope, obj) and scope["scopeName"] not in have
        ]
        if missing:
            shown = " ".join(
                f"{{{scope['scopeName']} {scope.get('operator', '')} [{' '.join(scope.get('values') or ())}]}}"
                for scope in missing
            )
            # Upstream's error carries no status.
            raise status_error(500, "", f"insufficient quota to match these scopes: [{shown}]")

    def _check(self, attributes: Attributes, quota: Object, charge: _Charge) -> None:
        hard, used = _hard(quota), _used(quota)
        total = dict(used)
        add(total, charge.usage)
        exceeded = sorted(name for name in charge.usage if total[name] > hard[name])
        if exceeded and attributes.subresource != "status":
            texts = (_shown(values, exceeded) for values in (charge.usage, used, hard))
            requested, so_far, limit = texts
            what = f"requested: {requested}, used: {so_far}, limited: {limit}"
            raise forbidden(attributes, f"exceeded quota: {charge.quota}, {what}")

    # ---------------------------------------------------------------- charging

    async def _charge(self, attributes: Attributes, charge: _Charge) -> None:
        def transform(quota: Object) -> Object:
            self._check(attributes, quota, charge)
            total = _used(quota)
            add(total, charge.usage)
            used = {name: str(quantity) for name, quantity in total.items()}
            return {**quota, "status": {**(quota.get("status") or {}), "used": used}}

        assert self.initializer.writer is not None
        try:
            await self.initializer.writer.update_status(_QUOTAS, attributes.namespace, charge.quota, transform)
        except StatusError as error:
            if error.reason != "NotFound":  # a quota that is gone limits nothing
                raise


def _handles(resource: GroupResource, attributes: Attributes) -> bool:
    """Reports whether the write can change what is used; what is only counted counts when it is created."""
    created, subresource = attributes.operation == "CREATE", attributes.subresource
    if resource in (SERVICES, RESOURCE_CLAIMS):
        return not subresource
    if resource == CLAIMS:
        # Upstream compares pointers to the allocations, and so checks each write of a status.
        return subresource in ("", "status")
    if resource == PODS and not created:
        new, old = attributes.object, attributes.old_object
        if subresource:
            return subresource == "resize" and attributes.operation == "UPDATE"
        return new is not None and old is not None and is_terminating(new) != is_terminating(old)
    return created and not subresource


def _limited_resources(document: Object | None) -> list[Object]:
    """ValueError with upstream's complaint."""
    if document is None:
        return []
    check_named(document)
    is_new = document["apiVersion"] == "apiserver.config.k8s.io/v1"
    limited: list[Object] = (
        _KINDS["ResourceQuotaConfiguration" if is_new else "Configuration"].read(document).get("limitedResources") or []
    )
    missing = [i for i, each in enumerate(limited) if not each.get("resource")]
    if missing:
        path = Path("limitedResources")
        raise ValueError(aggregated([required(path.index(i).child("resource")) for i in missing]))
    return limited


def _name(quota: Object) -> str:
    return str(metadata(quota)["name"])


def _hard(quota: Object) -> ResourceList:
    return resource_list((quota.get("status") or {}).get("hard"))


def _used(quota: Object) -> ResourceList:
    return resource_list((quota.get("status") or {}).get("used"))


def _more(new: ResourceList, old: ResourceList) -> ResourceList:
    """By how much each has grown."""
    return {name: max(quantity - old.get(name, ZERO), ZERO) for name, quantity in new.items()}


def _shown(values: ResourceList, names: Iterable[str]) -> str:
    return ",".join(f"{name}={values[name]}" for name in names if name in values)
