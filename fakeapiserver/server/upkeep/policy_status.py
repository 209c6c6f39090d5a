"""Writes what type checking finds into the status of ValidatingAdmissionPolicies, as kube-controller-manager does.

Upstream: pkg/controller/validatingadmissionpolicystatus/controller.go,
k8s.io/apiserver/pkg/cel/openapi/resolver, k8s.io/apimachinery/pkg/api/meta/restmapper.go.
"""

import logging
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fakeapiserver.admission.policy import type_checking
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.schema.resolve import Schema, whole
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.options.config import POLICY_STATUS
from fakeapiserver.server.upkeep.status_writer import apply_status
from fakeapiserver.server.upkeep.watch_loop import follow
from fakeapiserver.storage.interface import Event

if TYPE_CHECKING:
    from fakeapiserver.admission.policy.type_checking import TypeChecker

log = logging.getLogger(__name__)

_MANAGER: Final = "validatingadmissionpolicy-status"
_ACCOUNT: Final = f"system:serviceaccount:kube-system:{POLICY_STATUS}"
_USER: Final = UserInfo(
    _ACCOUNT, groups=("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
)


class PolicyStatus:
    def __init__(self, scopes: RequestScopes) -> None:
        self._scopes = scopes

    @cached_property
    def _checker(self) -> "TypeChecker":
        """With the first policy: a server without any doesn't wait for CEL to be imported."""
        clock = self._scopes.clock
        return type_checking.TypeChecker(
            self._kinds_for,
            self._schema_of,
            lambda: int(clock.now() * 1e9) % 1_000_000_000,
            self._scopes.table.scheme.features.version,
        )

    async def run(self) -> None:
        """Runs until cancelled."""
        scope = self._scope()
        store = scope.store
        assert store is not None

        async def began() -> None:
            for item in store.storage.list_now(store.prefix).items:
                await self._reconcile(scope, store.decode(item.value))

        async def changed(events: Sequence[Event]) -> None:
            for event in events:
                if event.type != "DELETED":
                    await self._reconcile(scope, store.decode(event.object.value))

        await follow(store, began, changed)

    def _scope(self) -> RequestScope:
        scope = self._scopes.lookup("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
        assert scope is not None
        return scope

    async def _reconcile(self, scope: RequestScope, policy: Object) -> None:
        generation = metadata(policy).get("generation", 0)
        if generation <= (policy.get("status") or {}).get("observedGeneration", 0):
            return
        try:
            warnings = self._checker.check(policy["spec"])
            checked: Object = {"expressionWarnings": warnings} if warnings else {}
            status = {"observedGeneration": generation, "typeChecking": checked}
            await apply_status(scope, metadata(policy)["name"], status, user=_USER, manager=_MANAGER)
        except StatusError as error:
            log.info("policy %s has moved on: %s", metadata(policy)["name"], error)
        except Exception:  # one policy doesn't keep the others from their status
            log.exception("policy %s: its status was not written", metadata(policy)["name"])

    def _kinds_for(self, group: str, version: str, resource: str) -> Iterator[GroupVersionKind]:
        """Yields the kinds of a resource as discovery has them, by its plural or singular name."""
        for row in self._scopes.table:
            names = (row.gvr.resource, row.singular or row.gvk.kind.lower())
            if row.gvr.version == version and resource.lower() in names and group in ("", row.gvr.group):
                yield row.gvk

    def _schema_of(self, kind: GroupVersionKind) -> Schema | None:
        table = self._scopes.table
        row = table.for_kind(kind)
        schema = None if row is None else table.definition(row)
        if row is None or schema is None:
            return None
        own, base = row.definitions or {}, table.scheme.definitions
        return whole(schema, lambda name: own.get(name) or base[name])
