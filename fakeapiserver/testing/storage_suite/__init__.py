"""The contract of a storage backend: coroutines that take a factory of empty storages, and assert what it must do.

The factory may be a coroutine, for a backend that has to connect first.

    @pytest.mark.parametrize("check", storage_suite.checks(), ids=lambda check: check.__name__)
    def test_memory(check): asyncio.run(check(MemoryStorage))

Checks whose name is that of one of upstream's tests expect what it does; docs/storage.md lists all of upstream's.

Upstream: k8s.io/apiserver/pkg/storage/testing; the watch promises are etcd's (tests/robustness/validate/watch.go).
"""

from fakeapiserver.testing.storage_suite.pods import (
    OFFSET,
    PODS,
    Check,
    MakeStorage,
    create,
    drain,
    names,
    update,
    value,
)
from fakeapiserver.testing.storage_suite.suite import checks

__all__ = ["OFFSET", "PODS", "Check", "MakeStorage", "checks", "create", "drain", "names", "update", "value"]
