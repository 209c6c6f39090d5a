"""An informer or a controller that prints its measurements; `python -m conformance.bench.clients` runs it and Go's.

python measured.py KUBECONFIG informer|controller OBJECTS WORKERS
"""

import asyncio
import json
import sys
import time
from contextlib import suppress
from pathlib import Path

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client import kubeconfig
from fakeapiserver.client.cache.shared_informer import SharedInformerFactory, strip_managed_fields
from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.rest import RESTClient
from fakeapiserver.controller_runtime import (
    CacheOptions,
    ControllerOptions,
    Manager,
    ManagerOptions,
    ReconcilerFunc,
    Request,
    controller_managed_by,
    gvk,
)

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
CONFIG_MAP = gvk("v1", "ConfigMap")


async def informer(path: str) -> dict[str, float]:
    """Returns the number of objects, the duration of the first list, and the memory of the process with the cache."""
    async with RESTClient(kubeconfig.load(path)) as rest:
        factory = SharedInformerFactory(DynamicClient(rest), namespace="default", transform=strip_managed_fields)
        configmaps = factory.for_resource(CONFIG_MAPS)
        start = time.perf_counter()
        factory.start()
        await factory.wait_for_sync()
        seconds = time.perf_counter() - start
        found = {"objects": float(len(configmaps.indexer)), "seconds": seconds, "rss_mib": rss()}
        await factory.shutdown()
        return found


async def controller(path: str, count: int, workers: int) -> dict[str, float]:
    """From writing an object to its reconcile, and how many of them a second."""
    manager = Manager(kubeconfig.load(path), ManagerOptions(cache=CacheOptions(namespaces=["default"])))
    times: list[tuple[float, float]] = []
    done = asyncio.Event()

    async def reconcile(request: Request) -> None:
        if not request.name.startswith("bench-"):
            return
        found = await manager.client.get(CONFIG_MAP, request.name, request.namespace)
        times.append((time.time(), int(found["data"]["written"]) / 1e9))
        if len(times) == count:
            done.set()

    options = ControllerOptions(max_concurrent_reconciles=workers)
    controller_managed_by(manager).for_(CONFIG_MAP).with_options(options).complete(ReconcilerFunc(reconcile))
    running = asyncio.ensure_future(manager.run())
    await manager.elected.wait()
    informers = await manager.cache.informer_for(CONFIG_MAP)
    await informers.wait_for_sync()
    print("ready", flush=True)
    await done.wait()
    used = rss()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    waits = sorted((seen - written) * 1000 for seen, written in times)
    seconds = times[-1][0] - times[0][0]
    return {
        "per_second": len(times) / seconds,
        "p50_ms": waits[len(waits) // 2],
        "p99_ms": waits[len(waits) * 99 // 100],
        "rss_mib": used,
    }


def rss() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def main(path: str, mode: str, count: str, workers: str) -> None:
    work = informer(path) if mode == "informer" else controller(path, int(count), int(workers))
    print(json.dumps(asyncio.run(work)))


if __name__ == "__main__":
    main(*sys.argv[1:])
