"""Objects in etcd that can't be decrypted, and that can be later."""

import asyncio

import pytest

from fakeapiserver.cluster.processes.etcd_process import EtcdProcess
from fakeapiserver.storage.encryption.transformers import TransformError
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.storage import EtcdStorage
from fakeapiserver.storage.etcd.values import Decoded
from fakeapiserver.storage.interface import Index, ListQuery, Unreadable
from fakeapiserver.testing import storage_suite as suite
from tests.storage.etcd.json_values import JSONValues

PODS = "/registry/pods/"


class LockedValues(JSONValues):
    """JSON that can't be decrypted while `is_locked`."""

    is_locked = True

    def decode(self, key: str, data: bytes) -> Decoded | None:
        if self.is_locked:
            raise TransformError("no matching prefix found")
        return super().decode(key, data)


async def stored_pods(etcd: EtcdProcess, *names: str) -> None:
    storage = await EtcdStorage.opened(Client.of([etcd.url]), JSONValues())
    for name in names:
        await storage.create(f"{PODS}default/{name}", b'{"metadata":{}}', suite.OFFSET, Index())
    await storage.finish()


def test_lists_fail_from_the_first_unreadable_key_on(etcd: EtcdProcess) -> None:
    async def scenario() -> None:
        await stored_pods(etcd, "a", "b")
        storage = await EtcdStorage.opened(Client.of([etcd.url]), LockedValues())
        for start, first in (("", "a"), (f"{PODS}default/b", "b")):
            with pytest.raises(Unreadable) as caught:
                await storage.list(PODS, ListQuery(start=start))
            assert caught.value.in_list == f'unable to transform key "{PODS}default/{first}": no matching prefix found'
        assert (await storage.list("/registry/secrets/")).items == []
        await storage.finish()

    asyncio.run(scenario())


def test_no_list_lacks_objects_while_everything_is_read_again(etcd: EtcdProcess) -> None:
    """Until the copy has them, lists fail as before."""

    async def scenario() -> None:
        await stored_pods(etcd, "a", "b")
        values = LockedValues()
        storage = await EtcdStorage.opened(Client.of([etcd.url]), values)
        values.is_locked = False
        reading = asyncio.ensure_future(storage.read_again())
        refused = 0
        while not reading.done():
            try:
                assert len((await storage.list(PODS, ListQuery(minimum_revision=0))).items) == 2
            except Unreadable:
                refused += 1
            await asyncio.sleep(0)
        assert refused
        assert len((await storage.list(PODS)).items) == 2
        await storage.create(f"{PODS}default/c", b'{"metadata":{}}', suite.OFFSET, Index())
        assert len((await storage.list(PODS)).items) == 3
        await storage.finish()

    asyncio.run(scenario())
