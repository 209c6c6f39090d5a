"""The addresses of simulated nodes and their pods."""

import ipaddress
import itertools

import pytest

from fakeapiserver.nodes.node import MAX_NODES, address_of, pod_range, pod_ranges


@pytest.mark.parametrize(
    ("number", "address", "pods"),
    [
        (1, "172.18.0.3", "100.64.0.0/20"),
        (2, "172.18.0.4", "100.64.16.0/20"),
        (1024, "172.18.4.26", "100.127.240.0/20"),
        (1025, "172.18.4.27", "240.0.0.0/20"),
        (10_000, "172.18.40.2", "242.48.240.0/20"),
    ],
)
def test_nodes_have_an_address_and_a_range_each(number: int, address: str, pods: str) -> None:
    assert (address_of(number), str(pod_range(number))) == (address, pods)


def test_no_two_nodes_share_an_address() -> None:
    numbers = range(1, MAX_NODES + 1)
    ranges = sorted(map(pod_range, numbers))
    assert all(first.broadcast_address < second.network_address for first, second in itertools.pairwise(ranges))
    assert len({address_of(number) for number in numbers}) == MAX_NODES
    assert len({ipaddress.ip_network(pod_ranges(number, dual_stack=True)[1]) for number in numbers}) == MAX_NODES
