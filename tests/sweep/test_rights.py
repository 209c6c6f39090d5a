"""An operator that runs with its service account's rights: they are granted to each of its starts, and missing ones are found."""

from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.controller_runtime import Manager, Request, controller_managed_by, gvk
from fakeapiserver.sweep import rights, sweep
from fakeapiserver.sweep.case import Target, prepared
from fakeapiserver.sweep.in_process import InProcess
from fakeapiserver.sweep.scenario import Scenario, applying

CONFIG_MAP = gvk("v1", "ConfigMap")
API = "rbac.authorization.k8s.io"
ACCOUNT = [{"kind": "ServiceAccount", "name": "copier", "namespace": "default"}]


def role(*verbs: str) -> list[dict[str, Any]]:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": [*verbs]}]
    ref = {"apiGroup": API, "kind": "ClusterRole", "name": "copier"}
    named = {"apiVersion": f"{API}/v1", "metadata": {"name": "copier"}}
    return [
        {**named, "kind": "ClusterRole", "rules": rules},
        {**named, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": ACCOUNT},
    ]


class Copier:
    """Writes a ConfigMap and a Secret for the ConfigMap `site`."""

    def __init__(self, manager: Manager) -> None:
        self.client = manager.client

    async def reconcile(self, request: Request) -> None:
        if request.name == "site":
            meta = {"name": "copy", "namespace": request.namespace}
            await self.client.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, force=True)
            await self.client.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta}, force=True)


def setup(manager: Manager) -> None:
    controller_managed_by(manager).for_(CONFIG_MAP).complete(Copier(manager))


def test_a_missing_right_is_a_finding() -> None:
    site = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}}
    objects = role("get", "list", "watch", "create", "patch")
    scenario = Scenario([applying([site], "default")], objects, service_account="default/copier")
    target = Target(InProcess(setup), scenario)
    with prepared(target) as base:
        learnt = sweep.learn(target, ["restart"], base)
        report = sweep.sweep(target, learnt, [])
    assert [finding.title for finding in report.findings] == ["the operator has no right to patch secrets"]
    assert [finding.causes for finding in report.findings] == [[sweep.NOTHING]]
    assert sweep.named(learnt, sweep.NOTHING) == []


def test_a_service_account_without_rights() -> None:
    with (
        Cluster(controllers=()) as cluster,
        pytest.raises(ValueError, match="names the service account default/copier"),
    ):
        rights.grant(cluster, "default/copier")
