"""At rest means that every change has reached every controller."""

from fakeapiserver.component_helpers.objects import CONFIG_MAPS, NODES
from tests.controllers.harness import Harness, run


def test_watches_that_a_burst_wakes_later_are_waited_for() -> None:
    async def scenario(cluster: Harness) -> None:
        watchers = [cluster.api.storage.watch("/registry/configmaps/") for _ in range(200)]
        nodes = cluster.client.resource(NODES)
        for round_ in range(5):
            for (
                name
            ) in "ab":  # the second write follows so soon that its watchers are woken together, some milliseconds later
                await cluster.of(CONFIG_MAPS).create({"metadata": {"name": f"{name}{round_}"}})
            await nodes.create({"metadata": {"name": f"node-{round_}"}})
            await cluster.settle()
            node = await nodes.get(f"node-{round_}")
            assert node["metadata"].get("annotations") == {"node.alpha.kubernetes.io/ttl": "0"}
        for watcher in watchers:
            watcher.close()

    run(scenario, "ttl-controller")
