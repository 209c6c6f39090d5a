"""Tests which devices claims get on a node: no cluster, plain objects."""

from itertools import count
from typing import Any

import pytest

from fakeapiserver.nodes.scheduler.allocation_result import score
from fakeapiserver.nodes.scheduler.allocator import AllocationFailed, Allocator, Unallocatable
from fakeapiserver.nodes.scheduler.pools import DeviceID, Slices, Taken

Object = dict[str, Any]
DRIVER = "gpu.example.com"
NODE: Object = {"metadata": {"name": "node-1", "labels": {"zone": "a"}}}
ZONE_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
ZONE_B = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]}
ON_NODE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]}
CANNOT = "cannot allocate all claims"


def device(name: str, **more: Any) -> Object:
    return {"name": name, **more}


def with_model(name: str, model: str, **more: Any) -> Object:
    return device(name, attributes={"model": {"string": model}}, **more)


def slice_of(
    *devices: Object,
    name: str = "s",
    pool: str = "p",
    driver: str = DRIVER,
    generation: int = 1,
    of: int = 1,
    **spec: Any,
) -> Object:
    where = spec if spec and not spec.keys() <= {"sharedCounters"} else {"nodeName": "node-1", **spec}
    pool_spec = {"name": pool, "generation": generation, "resourceSliceCount": of}
    return {"metadata": {"name": name}, "spec": {"driver": driver, "pool": pool_spec, "devices": [*devices], **where}}


def exactly(name: str = "r", *selectors: str, of_class: str = "gpu", **more: Any) -> Object:
    spec = {"deviceClassName": of_class, "allocationMode": "ExactCount", "count": 1, **more}
    return {"name": name, "exactly": {**spec, "selectors": [{"cel": {"expression": text}} for text in selectors]}}


def choice(name: str, *selectors: str, **more: Any) -> Object:
    found: Object = exactly(name, *selectors, **more)["exactly"]
    return {"name": name, **found}


def claim(*requests: Object, name: str = "c", **devices: Any) -> Object:
    return {"metadata": {"namespace": "ns", "name": name}, "spec": {"devices": {"requests": [*requests], **devices}}}


class Classes:
    def __init__(self) -> None:
        self._specs: dict[str, Object] = {
            "gpu": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
            "configured": {"config": [{"opaque": {"driver": DRIVER, "parameters": 1}}]},
        }

    def get_by_key(self, key: str) -> Object | None:
        spec = self._specs.get(key)
        return None if spec is None else {"metadata": {"name": key}, "spec": spec}


def allocate(
    slices: list[Object], *claims: Object, taken: Taken | None = None, since_1_37: bool = True
) -> list[Object]:
    numbers = count(1)
    taken = taken or Taken()
    allocator = Allocator(Slices(slices), Classes(), taken, lambda: f"share-{next(numbers)}", since_1_37=since_1_37)
    return [*allocator.allocate(NODE, claims)]


def given(found: list[Object]) -> list[list[str]]:
    return [[f"{row['request']}={row['device']}" for row in one["devices"]["results"]] for one in found]


def taken(*devices: str, **more: Any) -> Taken:
    found = Taken()
    rows = [{"driver": DRIVER, "pool": "p", "device": name, **more} for name in devices]
    found.set("other", {"devices": {"results": rows}})
    return found


MODEL = f"device.attributes['{DRIVER}'].model"
THREE = slice_of(with_model("d1", "a"), with_model("d2", "b"), with_model("d3", "a"))
SAME = {"matchAttribute": f"{DRIVER}/model"}
DISTINCT = {"distinctAttribute": f"{DRIVER}/model"}


@pytest.mark.parametrize(
    ("requests", "constraints", "devices"),
    [
        ([exactly()], [], ["r=d1"]),
        ([exactly("r", f"{MODEL} == 'b'")], [], ["r=d2"]),
        ([exactly("r", f"{MODEL} in ['a', 'b']", f"{MODEL} != 'a'")], [], ["r=d2"]),
        ([exactly(count=2)], [], ["r=d1", "r=d2"]),
        ([exactly(count=2)], [SAME], ["r=d1", "r=d3"]),
        ([exactly("x"), exactly("y")], [SAME], ["x=d1", "y=d3"]),
        ([exactly("x"), exactly("y")], [{**SAME, "requests": ["x"]}], ["x=d1", "y=d2"]),
        ([exactly("x"), exactly("y")], [DISTINCT], ["x=d1", "y=d2"]),
        ([exactly("x"), exactly("y", f"{MODEL} == 'a'")], [DISTINCT], ["x=d2", "y=d1"]),
        ([exactly(allocationMode="All")], [], ["r=d1", "r=d2", "r=d3"]),
        ([exactly("r", f"{MODEL} == 'a'", allocationMode="All")], [SAME], ["r=d1", "r=d3"]),
        ([{"name": "r", "firstAvailable": [choice("x", count=4), choice("y", count=2)]}], [], ["r/y=d1", "r/y=d2"]),
        (
            [{"name": "r", "firstAvailable": [choice("x", count=3), choice("y", f"{MODEL} == 'b'")]}, exactly("z")],
            [],
            ["r/y=d2", "z=d1"],
        ),
        (
            [{"name": "r", "firstAvailable": [choice("x"), choice("y")]}, exactly("z")],
            [{**SAME, "requests": ["r/x", "z"]}],
            ["r/x=d1", "z=d3"],
        ),
    ],
)
def test_a_claim_gets_the_first_devices_that_agree(
    requests: list[Object], constraints: list[Object], devices: list[str]
) -> None:
    assert given(allocate([THREE], claim(*requests, constraints=constraints))) == [devices]


@pytest.mark.parametrize(
    ("slices", "requests", "more", "error", "message"),
    [
        ([THREE], [exactly(count=4)], {}, Unallocatable, CANNOT),
        ([THREE], [exactly(count=3)], {"constraints": [SAME]}, Unallocatable, CANNOT),
        ([THREE], [exactly()], {"constraints": [{"matchAttribute": "other/model"}]}, Unallocatable, CANNOT),
        ([], [exactly(allocationMode="All")], {}, Unallocatable, CANNOT),
        (
            [THREE],
            [exactly(allocationMode="All")],
            {"constraints": [SAME]},
            AllocationFailed,
            f"claim ns/c, request r: cannot add device {DRIVER}/p/d2 because a claim constraint would not be satisfied",
        ),
        (
            [THREE],
            [exactly("r", f"device.attributes['{DRIVER}'].speed == 1")],
            {},
            AllocationFailed,
            f"claim ns/c: selector #0 on device {DRIVER}/p/d1: CEL runtime error: no such key: speed. consider using CEL "
            "optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields",
        ),
        (
            [slice_of(device("d1", attributes={"v": {"version": "1"}}))],
            [exactly()],
            {},
            AllocationFailed,
            f"class gpu: selector #0 on device {DRIVER}/p/d1: CEL runtime error: attribute v: parse semantic version: "
            "No Major.Minor.Patch elements found",
        ),
        (
            [THREE],
            [exactly(of_class="none")],
            {},
            AllocationFailed,
            'claim ns/c, request r: could not retrieve device class none: deviceclass.resource.k8s.io "none" not found',
        ),
        (
            [THREE],
            [exactly("x", count=20), exactly("y", count=20)],
            {},
            AllocationFailed,
            "claim ns/c, request y: adding 20 devices exceeds the claim limit of 32, with 20 already accounted for",
        ),
        ([slice_of(device("d1"), of=2)], [exactly()], {}, Unallocatable, CANNOT),
        (
            [slice_of(device("d1"), of=2)],
            [exactly(allocationMode="All")],
            {},
            AllocationFailed,
            f"claim ns/c, request r: asks for all devices, but resource pool {DRIVER}/p is currently being updated",
        ),
        (
            [slice_of(device("d1"), device("d1"))],
            [exactly()],
            {},
            Unallocatable,
            "invalid resource pools were encountered",
        ),
        ([slice_of(device("d1"), nodeName="node-2")], [exactly()], {}, Unallocatable, CANNOT),
        ([slice_of(device("d1"), nodeSelector=ZONE_B)], [exactly()], {}, Unallocatable, CANNOT),
        # a newer generation has nothing on this node
        (
            [slice_of(device("d1")), slice_of(device("d1"), name="t", generation=2, nodeName="node-2")],
            [exactly()],
            {},
            None,
            "",
        ),
        (
            [slice_of(device("d1"), of=2), slice_of(device("d1"), name="t", generation=2, nodeName="node-2")],
            [exactly()],
            {},
            Unallocatable,
            CANNOT,
        ),
    ],
)
def test_why_a_claim_gets_nothing(
    slices: list[Object], requests: list[Object], more: Object, error: type[Exception] | None, message: str
) -> None:
    if error is None:
        assert allocate(slices, claim(*requests, **more))
        return
    with pytest.raises(error) as raised:
        allocate(slices, claim(*requests, **more))
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("slices", "selector"),
    [
        ([slice_of(device("d1"))], ON_NODE),
        ([slice_of(device("d1"), allNodes=True)], None),
        ([slice_of(device("d1"), nodeSelector=ZONE_A)], ZONE_A),
        ([slice_of(device("d1"), nodeSelector=ZONE_A), slice_of(device("d2"), pool="q", nodeSelector=ZONE_A)], ZONE_A),
        ([slice_of(device("d1"), allNodes=True), slice_of(device("d2"), pool="q")], ON_NODE),
        ([slice_of(device("d1", bindsToNode=True), allNodes=True)], ON_NODE),
        (
            [
                slice_of(
                    device("d1", nodeSelector=ZONE_B), device("d2", nodeSelector=ZONE_A), perDeviceNodeSelection=True
                )
            ],
            ZONE_A,
        ),
    ],
)
def test_an_allocation_can_be_used_where_all_of_its_devices_can(slices: list[Object], selector: Object | None) -> None:
    requests = [exactly(f"r{number}") for number, _ in enumerate(slices)]
    (found,) = allocate(slices, claim(*requests))
    assert found.get("nodeSelector") == selector


def test_allocated_devices_are_taken() -> None:
    assert given(allocate([THREE], claim(exactly()), taken=taken("d1"))) == [["r=d2"]]
    assert given(allocate([THREE], claim(exactly()), taken=taken("d1", adminAccess=True))) == [["r=d1"]]
    assert given(allocate([THREE], claim(exactly()), claim(exactly(), name="d"))) == [["r=d1"], ["r=d2"]]
    freed = taken("d1", "d2")
    freed.set("other", None)
    assert given(allocate([THREE], claim(exactly()), taken=freed)) == [["r=d1"]]


def test_who_administers_devices_gets_those_that_others_have() -> None:
    admin = exactly("admin", adminAccess=True, count=2)
    (found,) = allocate([THREE], claim(admin), taken=taken("d1"))
    assert given([found]) == [["admin=d1", "admin=d2"]]
    assert [row["adminAccess"] for row in found["devices"]["results"]] == [True, True]


def test_an_earlier_claim_takes_something_else_where_a_later_one_finds_nothing() -> None:
    picky = claim(exactly("r", f"{MODEL} == 'a'", count=2), name="picky")
    assert given(allocate([THREE], claim(exactly()), picky)) == [["r=d2"], ["r=d1", "r=d3"]]


@pytest.mark.parametrize(
    ("taint", "tolerations", "wanted"),
    [
        ({"key": "k", "effect": "NoSchedule"}, [], "d2"),
        ({"key": "k", "effect": "NoExecute"}, [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], "d2"),
        ({"key": "k", "effect": "NoSchedule"}, [{"key": "k", "operator": "Exists"}], "d1"),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, [{"key": "k", "value": "v"}], "d1"),
        ({"key": "k", "effect": "None"}, [], "d1"),
    ],
)
def test_taints_are_tolerated_or_avoided(taint: Object, tolerations: list[Object], wanted: str) -> None:
    slices = [slice_of(device("d1", taints=[taint]), device("d2"))]
    (found,) = allocate(slices, claim(exactly(tolerations=tolerations)))
    (row,) = found["devices"]["results"]
    assert row["device"] == wanted
    assert row.get("tolerations", []) == tolerations


def shared(name: str, value: str, **policy: Any) -> Object:
    capacity = {"memory": {"value": value, **({"requestPolicy": policy} if policy else {})}}
    return device(name, allowMultipleAllocations=True, capacity=capacity)


@pytest.mark.parametrize(
    ("policy", "requested", "consumed"),
    [
        ({}, None, "10Gi"),
        ({}, "2Gi", "2Gi"),
        ({"default": "1Gi"}, None, "1Gi"),
        ({"default": "1Gi", "validValues": ["1Gi", "4Gi"]}, "2Gi", "4Gi"),
        ({"default": "1Gi", "validValues": ["1Gi", "4Gi"]}, "5Gi", None),
        ({"default": "2Gi", "validRange": {"min": "2Gi"}}, "1Gi", "2Gi"),
        ({"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi"}}, "2.5Gi", "4Gi"),
        ({"default": "2Gi", "validRange": {"min": "2Gi", "max": "4Gi"}}, "5Gi", None),
        ({}, "11Gi", None),
    ],
)
def test_of_a_shared_device_a_claim_gets_what_its_policy_says(
    policy: Object, requested: str | None, consumed: str | None
) -> None:
    slices = [slice_of(shared("d1", "10Gi", **policy))]
    wanted = exactly(capacity={"requests": {"memory": requested}}) if requested else exactly()
    if consumed is None:
        with pytest.raises(Unallocatable):
            allocate(slices, claim(wanted))
        return
    (found,) = allocate(slices, claim(wanted))
    (row,) = found["devices"]["results"]
    assert (row["shareID"], row["consumedCapacity"]) == ("share-1", {"memory": consumed})


def test_a_shared_device_is_shared_until_it_is_full() -> None:
    slices = [slice_of(shared("d1", "10Gi"))]
    half = claim(exactly(capacity={"requests": {"memory": "5Gi"}}))
    assert given(allocate(slices, half, {**half, "metadata": {"namespace": "ns", "name": "d"}})) == [["r=d1"]] * 2
    used = taken("d1", shareID="x", consumedCapacity={"memory": "6Gi"})
    with pytest.raises(Unallocatable):
        allocate(slices, half, taken=used)
    used.set("other", None)
    assert allocate(slices, half, taken=used)


def test_devices_that_share_counters_are_not_given_together() -> None:
    def consuming(name: str, slices: str) -> Object:
        return device(name, consumesCounters=[{"counterSet": "c", "counters": {"slices": {"value": slices}}}])

    counters = {"name": "c", "counters": {"slices": {"value": "3"}}}
    pool = [
        slice_of(name="counters", of=2, sharedCounters=[counters]),
        slice_of(consuming("whole", "3"), consuming("half", "2"), consuming("third", "1"), of=2),
    ]
    assert given(allocate(pool, claim(exactly()))) == [["r=whole"]]
    assert given(allocate(pool, claim(exactly(count=2)))) == [["r=half", "r=third"]]
    assert given(allocate(pool, claim(exactly()), taken=taken("half"))) == [["r=third"]]
    with pytest.raises(Unallocatable):
        allocate(pool, claim(exactly(count=3)))
    with pytest.raises(Unallocatable):
        allocate(pool, claim(exactly()), taken=taken("whole"))


def test_devices_that_have_to_be_bound_come_last() -> None:
    bound = slice_of(device("b", bindingConditions=["Ready"], bindingFailureConditions=["Failed"]), pool="a")
    (found,) = allocate([bound, slice_of(device("d"), pool="b")], claim(exactly(count=2)))
    assert given([found]) == [["r=d", "r=b"]]
    assert found["devices"]["results"][1]["bindingConditions"] == ["Ready"]
    assert found["devices"]["results"][1]["bindingFailureConditions"] == ["Failed"]


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        (
            [exactly("r", f"device.attributes['{DRIVER}'].speed == 1")],
            "claim ns/c: selector #0: CEL runtime error: no such key: speed",
        ),
        (
            [exactly("x", count=20), exactly("y", count=20)],
            "claim ns/c: number of requested devices 40 exceeds the claim limit of 32",
        ),
    ],
)
def test_why_a_claim_gets_nothing_before_1_37(requests: list[Object], message: str) -> None:
    with pytest.raises(AllocationFailed) as error:
        allocate([THREE], claim(*requests), since_1_37=False)
    assert str(error.value) == message


@pytest.mark.parametrize("since_1_37", [True, False])
def test_drivers_receive_the_configuration_of_classes_and_claims(since_1_37: bool) -> None:
    def of(source: str, parameters: int, *requests: str) -> Object:
        return {"source": source, "requests": [*requests], "opaque": {"driver": DRIVER, "parameters": parameters}}

    choices = [choice("big", of_class="configured", count=9), choice("small", of_class="configured")]
    rows = [of("", number, *names) for number, names in enumerate([["x"], ["y/small"], ["y/big"], ["y"]])]
    everybody: Object = {"opaque": {"driver": DRIVER, "parameters": 9}}
    wanted = claim(
        exactly("x", of_class="configured"), {"name": "y", "firstAvailable": choices}, config=[everybody, *rows]
    )
    (found,) = allocate([THREE], wanted, since_1_37=since_1_37)
    of_class = of("FromClass", 1, "x", "y/small")
    if since_1_37:  # no names mean all requests
        del of_class["requests"]
    assert found["devices"]["config"] == [
        of_class,
        {**everybody, "source": "FromClaim"},
        of("FromClaim", 0, "x"),
        of("FromClaim", 1, "y/small"),
        of("FromClaim", 3, "y"),
    ]


@pytest.mark.parametrize(("since_1_37", "rows"), [(True, [None]), (False, [["x", "y"]] * 2)])
def test_the_configuration_of_two_requests(since_1_37: bool, rows: list[list[str] | None]) -> None:
    config = {"requests": ["x", "y"], "opaque": {"driver": DRIVER, "parameters": 1}}
    (found,) = allocate([THREE], claim(exactly("x"), exactly("y"), config=[config]), since_1_37=since_1_37)
    assert [row.get("requests") for row in found["devices"]["config"]] == rows


def test_earlier_choices_are_worth_more() -> None:
    wanted = claim({"name": "r", "firstAvailable": [choice("x"), choice("y")]})
    results = [{"devices": {"results": [{"request": name}]}} for name in ("r/x", "r/y")]
    assert [score(wanted, result) for result in results] == [8, 7]


def test_many_devices_are_no_deep_recursion() -> None:
    devices = [device(f"d{number:03}") for number in range(128)]
    claims = [claim(exactly(count=32), name=f"c{number}") for number in range(4)]
    assert sum(len(row) for row in given(allocate([slice_of(*devices)], *claims))) == 128


def test_a_search_without_end_is_given_up() -> None:
    devices = [with_model(f"d{number:03}", str(number % 2)) for number in range(60)]
    with pytest.raises(AllocationFailed, match="node node-1: timed out trying to allocate devices"):
        allocate([slice_of(*devices)], claim(exactly(count=31), constraints=[SAME]))


def test_a_devices_name_is_that_of_its_pool_and_driver() -> None:
    assert str(DeviceID("gpu.example.com", "node-1", "d1")) == "gpu.example.com/node-1/d1"
