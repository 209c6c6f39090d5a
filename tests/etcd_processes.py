"""A real etcd for tests, where there is one: FAKEAPISERVER_ETCD names it, or it is on the PATH."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from fakeapiserver.cluster.processes.etcd_process import EtcdProcess, NoEtcd, find_etcd


@contextmanager
def running(*flags: str, wait: bool = True) -> Iterator[EtcdProcess]:
    """An etcd that runs; the test is skipped on machines without one. Without `wait` it may not be ready yet."""
    pytest.importorskip("grpc", reason="the extra [etcd] isn't installed")
    try:
        binary = find_etcd()
    except NoEtcd as error:
        pytest.skip(str(error))
    etcd = EtcdProcess(binary, fsync=False, flags=flags)
    with ExitStack() as stack:
        stack.callback(etcd.close)
        etcd.launch() if not wait else etcd.start()
        yield etcd


@pytest.fixture
def new_etcd() -> Callable[..., object]:
    """Makes further ones, with flags of their own: `with new_etcd("--quota-backend-bytes=1000000") as etcd`."""
    return running


@pytest.fixture(scope="session")
def shared_etcd() -> Iterator[EtcdProcess]:
    """The etcd of all tests that leave it running and its history alone. Each uses keys of its own."""
    with running() as etcd:
        yield etcd


@pytest.fixture
def etcd() -> Iterator[EtcdProcess]:
    """An etcd of the test's own."""
    with running() as etcd:
        yield etcd


@pytest.fixture
def prefix() -> str:
    """The beginning of keys that no other test uses."""
    return f"/{uuid.uuid4().hex}/"
