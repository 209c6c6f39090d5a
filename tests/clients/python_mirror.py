"""Runs the bundled informer for ConfigMaps. For each line of its input it prints what the cache holds: names and resourceVersions."""

import asyncio
import json
import sys

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.cache.shared_informer import SharedInformerFactory
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest import RESTClient


async def main() -> None:
    async with RESTClient(kubeconfig.load()) as rest:
        factory = SharedInformerFactory(DynamicClient(rest), namespace="default")
        informer = factory.for_resource(GroupVersionResource("", "v1", "configmaps"))
        factory.start()
        while await asyncio.to_thread(sys.stdin.readline):
            held = [obj["metadata"] for obj in informer.indexer.list()]
            print(json.dumps({metadata["name"]: metadata["resourceVersion"] for metadata in held}), flush=True)


asyncio.run(main())
