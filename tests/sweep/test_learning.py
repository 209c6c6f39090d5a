"""A sweep learns from two undisturbed runs how the scenario ends, and which fields differ by chance."""

import hashlib

from fakeapiserver.controller_runtime import Manager, Request, controller_managed_by, gvk
from fakeapiserver.sweep import sweep
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.in_process import InProcess
from fakeapiserver.sweep.scenario import Scenario, applying

CONFIG_MAP = gvk("v1", "ConfigMap")
SITE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}, "data": {"mode": "fast"}}


class Digester:
    """Writes the digest of an owner next to its mode, as operators do to see whether their objects are up to date."""

    def __init__(self, manager: Manager) -> None:
        self.client = manager.client

    async def reconcile(self, request: Request) -> None:
        site = await self.client.find(CONFIG_MAP, request.name, request.namespace)
        if site is None or request.name != "site":
            return
        digest = hashlib.sha256(site["metadata"]["uid"].encode()).hexdigest()
        metadata = {"name": "digest", "namespace": request.namespace}
        data = {"mode": site["data"]["mode"], "digest": digest}
        await self.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def setup(manager: Manager) -> None:
    controller_managed_by(manager).for_(CONFIG_MAP).complete(Digester(manager))


def test_what_follows_from_a_uid_is_chance() -> None:
    learnt = sweep.learn(Target(InProcess(setup), Scenario([applying([SITE], "default")])))
    assert learnt.expected.noise == {"configmaps default/digest data.digest"}
