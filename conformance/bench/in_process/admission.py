"""Prints the processor seconds of the default admission chain for the creation of a pod, both steps: the best of some rounds."""

import asyncio
import copy
import json
import time
from typing import Any, Final

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config

_POD: Final = GroupVersionKind("", "v1", "Pod")
_PODS: Final = GroupVersionResource("", "v1", "pods")
_USER: Final = UserInfo("admin", groups=("system:masters",))
_OBJECT: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}]},
}
_ROUNDS: Final = 10
_WRITES: Final = 1000


async def main() -> None:
    api = APIServer(Config(controllers=()))
    await api.start()
    chain = api.scopes.services.admission
    seconds = []
    for _ in range(_ROUNDS):
        writes = [
            Attributes("CREATE", _POD, _PODS, "", "default", "web", copy.deepcopy(_OBJECT), None, _USER)
            for _ in range(_WRITES)
        ]
        started = time.process_time()
        for write in writes:
            await chain.admit(write)
            await chain.validate(write)
        seconds.append((time.process_time() - started) / len(writes))
    await api.stop()
    print(json.dumps(min(seconds)))


if __name__ == "__main__":
    asyncio.run(main())
