"""After each test, the storages that it finished are compared with what keeps their objects: a copy with its etcd, memory with its file."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final

import pytest

from fakeapiserver.storage.etcd.errors import EtcdError
from fakeapiserver.storage.etcd.storage import EtcdStorage
from fakeapiserver.storage.file.file_storage import FileStorage
from fakeapiserver.storage.interface import ResourceVersionTooLarge

# Seconds that a comparison may take, and that an etcd may need to respond if it runs.
_COMPARISON: Final = 20.0
_RESPONSE: Final = 1.0
_ATTEMPTS: Final = 5
Finish = Callable[[EtcdStorage | FileStorage], Awaitable[None]]


async def differences(storage: EtcdStorage | FileStorage) -> list[str]:
    """The keys in which the storage differs; none if its etcd doesn't run any more."""
    if isinstance(storage, EtcdStorage) and not await storage.is_healthy(_RESPONSE):
        return []
    with suppress(EtcdError):
        for _ in range(_ATTEMPTS):
            with suppress(ResourceVersionTooLarge):
                async with asyncio.timeout(_COMPARISON):
                    return [*await storage.differences()]
        return [f"the copy stays at revision {storage.revision}"]
    return []


def compared(finish: Finish, found: list[str]) -> Finish:
    """`finish`, after which `found` has the differences of the storage."""

    @functools.wraps(finish)
    async def compare_and_finish(storage: EtcdStorage | FileStorage) -> None:
        try:
            found.extend(await differences(storage))
        except Exception as error:
            found.append(repr(error))
        finally:
            await finish(storage)

    return compare_and_finish


@pytest.fixture(scope="session")
def found_differences() -> Iterator[list[str]]:
    """The differences that were found since they were last looked at."""
    found: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        for backend in (EtcdStorage, FileStorage):
            patched.setattr(backend, "finish", compared(backend.finish, found))
        yield found
    assert found == []


@pytest.fixture(autouse=True)
def agreement(found_differences: list[str]) -> Iterator[list[str]]:
    """Fails a test after which a storage had lost or made up something."""
    yield found_differences
    found, found_differences[:] = found_differences[:], []
    assert found == []
