"""Updates that start from a server's own copy, while another server has changed the object."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from tests.server.etcd.ours import TEAM, ask, near_and_far

_MERGE, _JSON = "application/merge-patch+json", "application/json-patch+json"
_PATH: Final = f"{TEAM}/configmaps/c"


def _config_map(number: str, **more: Any) -> Object:
    return {"metadata": {"name": "c"}, "data": {"n": number}, **more}


def _test(number: str) -> Object:
    return {"op": "test", "path": "/data/n", "value": number}


@pytest.mark.parametrize(
    ("media_type", "body", "status", "number"),
    [
        pytest.param(_MERGE, {"data": {"n": "1"}}, 200, "1", id="it changes nothing of the old state"),
        pytest.param(_MERGE, {"data": {"n": "2"}}, 200, "2", id="it changes nothing of the new state"),
        pytest.param(_JSON, [_test("2")], 200, "2", id="the old state refuses it"),
        pytest.param(_JSON, [_test("1"), {**_test("3"), "op": "replace"}], 422, "2", id="the new state refuses it"),
        pytest.param("application/json", _config_map("3"), 200, "3", id="a PUT without a revision"),
    ],
)
def test_the_newest_state_decides(
    shared_etcd: EtcdProcess, prefix: str, media_type: str, body: Any, status: int, number: str
) -> None:
    async def scenario() -> None:
        async with near_and_far(shared_etcd, prefix) as (near, far):
            await ask(near, "POST", f"{TEAM}/configmaps", _config_map("1"))
            await ask(far, "GET", _PATH)
            await ask(near, "PUT", _PATH, _config_map("2"))
            response = await far.request(
                "PUT" if media_type == "application/json" else "PATCH",
                _PATH,
                json=body,
                headers={"Content-Type": media_type},
            )
            assert response.status_code == status, response.text
            assert (await ask(near, "GET", _PATH))["data"] == {"n": number}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("again", "revision", "status"),
    [
        pytest.param({}, True, 200, id="the newest revision"),
        pytest.param({"immutable": True}, False, 422, id="made again, immutable"),
        pytest.param(None, False, 404, id="deleted"),
    ],
)
def test_a_put_after_another_server_made_the_object_again(
    shared_etcd: EtcdProcess, prefix: str, again: Mapping[str, Any] | None, revision: bool, status: int
) -> None:
    async def scenario() -> None:
        async with near_and_far(shared_etcd, prefix) as (near, far):
            await ask(near, "POST", f"{TEAM}/configmaps", _config_map("1", immutable=not again))
            await ask(far, "GET", _PATH)
            await ask(near, "DELETE", _PATH)
            body = _config_map("2")
            if again is not None:
                made = await ask(near, "POST", f"{TEAM}/configmaps", _config_map("1", **again))
                if revision:
                    body["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
            method, media_type = ("PATCH", _MERGE) if again is None else ("PUT", "application/json")
            response = await far.request(method, _PATH, json=body, headers={"Content-Type": media_type})
            assert response.status_code == status, response.text

    asyncio.run(scenario())
