"""A controller that prints the pods that come and go: `python pod_printer.py [KUBECONFIG]`."""

import asyncio
import sys

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.cache.indexer import Object, meta_namespace_key
from fakeapiserver.client.cache.shared_informer import ResourceEventHandlerFuncs, SharedInformerFactory, Tombstone
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.client.workqueue import WorkQueue

PODS = GroupVersionResource("", "v1", "pods")


async def main(path: str | None) -> None:
    """Runs until it is cancelled."""
    async with RESTClient(kubeconfig.load(path)) as rest:
        factory = SharedInformerFactory(DynamicClient(rest))
        informer = factory.for_resource(PODS)
        queue: WorkQueue[str] = WorkQueue("pods")

        def changed(obj: Object | Tombstone) -> None:
            queue.add(obj.key if not isinstance(obj, dict) else meta_namespace_key(obj))

        informer.add_event_handler(ResourceEventHandlerFuncs(add=changed, delete=changed))
        factory.start()
        await factory.wait_for_sync()
        known: set[str] = set()
        while True:
            key = await queue.get()
            exists = informer.indexer.get_by_key(key) is not None
            if exists != (key in known):
                print("added" if exists else "deleted", key, flush=True)
                known ^= {key}
            queue.done(key)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
