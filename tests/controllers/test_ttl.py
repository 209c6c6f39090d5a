"""Tests how long nodes may cache objects: the time depends on the number of nodes, with a margin on the way back."""

import pytest

from fakeapiserver.component_helpers.objects import NODES
from tests.controllers.harness import Harness, run

ANNOTATION = "node.alpha.kubernetes.io/ttl"


@pytest.mark.parametrize(
    ("sizes", "seconds"),
    [([1], "0"), ([100], "0"), ([101], "15"), ([101, 95], "15"), ([101, 85], "0")],
)
def test_the_annotation_follows_the_number_of_nodes(sizes: list[int], seconds: str) -> None:
    async def scenario(cluster: Harness) -> None:
        nodes, count = cluster.client.resource(NODES), 0
        for size in sizes:
            for number in range(count, size):
                await nodes.create({"metadata": {"name": f"n{number}"}})
            for number in range(size, count):
                await nodes.delete(f"n{number}")
            count = size
            await cluster.settle()
        # the annotation is written at the node's next change, which nodes make all the time
        await nodes.patch("n0", {"metadata": {"labels": {"seen": "now"}}})
        await cluster.settle()
        assert (await nodes.get("n0"))["metadata"]["annotations"][ANNOTATION] == seconds

    run(scenario, "ttl-controller")
