"""A sweep learns from two undisturbed runs how the scenario ends, and which fields differ by chance."""

import hashlib
from pathlib import Path

import pytest
from msgspec import structs

from fakeapiserver.controller_runtime import Manager, Request, controller_managed_by, gvk
from fakeapiserver.sweep import reporting, sweep
from fakeapiserver.sweep.case import Target
from fakeapiserver.sweep.in_process import InProcess
from fakeapiserver.sweep.scenario import Scenario, applying

CRD = Path(__file__).parent / "database-crd.yaml"
CONFIG_MAP = gvk("v1", "ConfigMap")
DATABASE = gvk("example.com/v1", "Database")
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
    assert learnt.uncertain == []


def test_a_surprise_at_a_write_of_one_run_has_a_name() -> None:
    learnt = sweep.learn(Target(InProcess(setup), Scenario([applying([SITE], "default")])))
    unplanned = structs.replace(learnt, plan=[], first=structs.replace(learnt.first, writes=[]))
    name = "crash after create configmaps default/digest"
    assert [each.id for each in sweep.named(unplanned, name)] == [name]
    with pytest.raises(ValueError, match="there is no perturbation 'crash'"):
        sweep.named(unplanned, "crash")


class Namer:
    """Names an object by a part of its owner's uid."""

    def __init__(self, manager: Manager) -> None:
        self.client = manager.client

    async def reconcile(self, request: Request) -> None:
        site = await self.client.find(CONFIG_MAP, request.name, request.namespace)
        if site is not None and request.name == "site":
            metadata = {"name": f"copy-{site['metadata']['uid'][:8]}", "namespace": request.namespace}
            await self.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


@pytest.mark.parametrize(
    ("ignore", "uncertain"), [pytest.param([], 2, id="compared"), pytest.param(["configmaps"], 0, id="ignored")]
)
def test_objects_of_only_one_undisturbed_run_are_named(ignore: list[str], uncertain: int) -> None:
    def setup(manager: Manager) -> None:
        controller_managed_by(manager).for_(CONFIG_MAP).complete(Namer(manager))

    target = Target(InProcess(setup), Scenario([applying([SITE], "default")], ignore=ignore))
    learnt = sweep.learn(target)
    assert [title.startswith("configmaps default/copy-") for title in learnt.uncertain] == [True] * uncertain
    text = reporting.text_of(sweep.sweep(target, learnt, []), lambda finding: "")
    assert ("2 objects differ between undisturbed runs, and can't be judged: configmaps" in text) == bool(uncertain)


class Counter:
    """Counts the objects of a Database before it makes one more, and looks at each Database only once."""

    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.seen: set[str] = set()

    async def reconcile(self, request: Request) -> None:
        database = await self.client.find(DATABASE, request.name, request.namespace)
        if database is None or request.name in self.seen:
            return
        self.seen.add(request.name)
        name, namespace = f"{request.name}-config", request.namespace
        is_there = await self.client.find(CONFIG_MAP, name, namespace) is not None
        await self.client.patch_status(database, {"status": {"size": int(is_there)}})
        if not is_there:
            metadata = {"name": name, "namespace": namespace}
            await self.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def test_a_status_that_a_restart_brings_up_to_date_is_chance() -> None:
    def setup(manager: Manager) -> None:
        controller_managed_by(manager).for_(DATABASE).complete(Counter(manager))

    database = {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "db"}, "spec": {"size": 1}}
    target = Target(InProcess(setup), Scenario([applying([database], "default")], options={"crds": str(CRD)}))
    learnt = sweep.learn(target)
    assert learnt.expected.noise == {"databases.example.com default/db status.size"}
    crash = sweep.named(learnt, "crash after create configmaps default/db-config")
    assert sweep.sweep(target, learnt, crash).findings == []
