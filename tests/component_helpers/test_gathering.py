"""Changes that come while a controller gathers them are part of its next look."""

import asyncio

import pytest

from fakeapiserver.component_helpers.workloads.gathering import gather_changes


@pytest.mark.parametrize(("objects", "turns"), [(0, 0), (3, 0), (4, 1), (1000, 250)])
def test_other_work_has_turns_in_proportion_to_the_objects(objects: int, turns: int) -> None:
    async def scenario() -> int:
        gathering, passed = asyncio.ensure_future(gather_changes(objects)), -1
        while not gathering.done():
            await asyncio.sleep(0)
            passed += 1
        return passed

    assert asyncio.run(scenario()) == turns
