"""Cluster roles that are made of others (upstream: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go)."""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.labels import from_label_selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_unsupported_media_type
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import CLUSTER_ROLES, labels_of
from fakeapiserver.component_helpers.pods import add_indexer
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import Event
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

_MANAGER: Final = "clusterrole-aggregation-controller"
_WORKERS: Final = 5
# The index of the roles that are made of others, and its one value.
_AGGREGATED: Final = "aggregated"
_YES: Final = "yes"
_FIELDS: Final = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


class ClusterRoleAggregation:
    """Requests are cluster roles with an aggregationRule."""

    def __init__(self, context: ControllerContext) -> None:
        self._roles = context.client.resource(CLUSTER_ROLES)
        self.roles = context.informer(CLUSTER_ROLES)
        self._indexed = add_indexer(self.roles, _AGGREGATED, _aggregated)

    def role_changed(self, event: Event, queue: Queue) -> None:
        """Any of them may be part of any other; there are few that are made of others."""
        for role in self._indexed.by_index(_AGGREGATED, _YES):
            queue.add(Request("", role["metadata"]["name"]))

    async def reconcile(self, request: Request) -> None:
        role = self.roles.indexer.get_by_key(request.name)
        if role is None or role.get("aggregationRule") is None:
            return
        rules = self._rules_of(role)
        if rules == [_shown(rule) for rule in role.get("rules") or ()]:
            return
        wanted: Object = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": request.name},
        }
        if rules:  # an apply without rules would take away those of others
            wanted["rules"] = rules
        try:
            await self._roles.apply(wanted, force=True, field_manager=_MANAGER)
        except StatusError as error:
            if not is_unsupported_media_type(error):
                raise
            await self._roles.update({**role, "rules": rules})  # a server without server-side apply

    def _rules_of(self, role: Object) -> Sequence[Object]:
        """The rules of all that are selected, each once, in the order of selectors and names."""
        rules: list[Object] = []
        others = sorted(self.roles.indexer.list(), key=lambda other: str(other["metadata"]["name"]))
        for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
            chosen = from_label_selector(selector)
            for other in others:
                if other["metadata"]["name"] == role["metadata"]["name"] or not chosen.matches(labels_of(other)):
                    continue
                for rule in map(_shown, other.get("rules") or ()):
                    if rule not in rules:
                        rules.append(rule)
        return rules


def _aggregated(role: Object) -> Sequence[str]:
    return () if role.get("aggregationRule") is None else (_YES,)


def _shown(rule: Object) -> Object:
    """Without what is empty."""
    return {field: rule[field] for field in _FIELDS if rule.get(field)}


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = ClusterRoleAggregation(context)
    controller = context.controller(reconciler, workers=_WORKERS)
    controller.add_source(Informer(reconciler.roles, reconciler.role_changed))
    return [controller]
