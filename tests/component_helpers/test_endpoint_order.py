"""The order in which ports, subsets and addresses are written: Go's, which goes by hashes."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.ip_addresses import canonical_ip
from fakeapiserver.component_helpers.endpoints.endpoint_slices import endpoint_ports, port_map_key
from fakeapiserver.component_helpers.endpoints.endpoint_subsets import repack_subsets
from fakeapiserver.component_helpers.workloads.deep_hash import fnv128a

Object = dict[str, Any]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", "6c62272e07bb014262b821756295c58d"),
        ("([]v1.EndpointPort)[]", "b823fa277840572f948b7ebdb09f7a1d"),
        (
            "(v1.EndpointPort){Name:(*string)http Protocol:(*v1.Protocol)TCP Port:(*int32)80 AppProtocol:(*string)<nil>}",
            "b6c4d325122a5ba6f795b0bbffcebb6f",
        ),
    ],
)
def test_hashes_are_those_of_go(text: str, value: str) -> None:
    assert f"{fnv128a(text):032x}" == value


def test_ports_of_slices_come_in_the_order_of_their_hashes() -> None:
    ports = [
        {"name": "http", "port": 80, "protocol": "TCP"},  # b6c4…
        {"name": "", "port": 80, "protocol": "TCP", "appProtocol": "a/b"},  # 1150…
        {},  # ad86…
    ]
    assert endpoint_ports(port_map_key(ports)) == [ports[1], ports[2], ports[0]]


def subset(*ips: str, not_ready: tuple[str, ...] = (), ports: tuple[int, ...] = ()) -> Object:
    found = {
        "addresses": [{"ip": ip} for ip in ips],
        "notReadyAddresses": [{"ip": ip} for ip in not_ready],
        "ports": [{"port": port} for port in ports],
    }
    return {name: value for name, value in found.items() if value}


@pytest.mark.parametrize(
    ("given", "packed"),
    [
        ([], []),
        ([subset("10.0.0.2", "10.0.0.1")], [subset("10.0.0.1", "10.0.0.2")]),
        # ports that the same addresses serve are in one subset
        ([subset("10.0.0.1", ports=(80,)), subset("10.0.0.1", ports=(81,))], [subset("10.0.0.1", ports=(80, 81))]),
        ([subset("10.0.0.1", ports=(80,)), subset("10.0.0.2", ports=(80,))], [subset("10.0.0.1", "10.0.0.2", ports=(80,))]),
        # what is ready and isn't, isn't
        ([subset("10.0.0.1", ports=(80,)), subset(not_ready=("10.0.0.1",), ports=(80,))], [subset(not_ready=("10.0.0.1",), ports=(80,))]),
        # without ports
        ([subset("10.0.0.1"), subset("10.0.0.1", ports=(80,))], [subset("10.0.0.1", ports=(80,))]),
    ],
)  # fmt: skip
def test_subsets_are_packed_into_one_layout(given: list[Object], packed: list[Object]) -> None:
    found = repack_subsets(given)
    for each in found:
        each.get("ports", []).sort(key=lambda port: port["port"])
    assert found == packed
    assert repack_subsets(found) == repack_subsets(given)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("010.000.0.1", "10.0.0.1"),
        ("fd00:0:0::1", "fd00::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", ""),
        ("10.0.0", ""),
        ("web", ""),
    ],
)
def test_addresses_are_written_one_way(text: str, address: str) -> None:
    assert canonical_ip(text) == address
