"""Pods of workloads, as a kubelet would leave them."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.client.errors import StatusError
from fakeapiserver.component_helpers.objects import PODS
from tests.controllers.harness import NAMESPACE, Harness, Object


def template(image: str = "web:1", app: str = "web") -> Object:
    """A pod template, labelled `app`."""
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": image}]}}


def selecting(app: str = "web") -> Object:
    return {"matchLabels": {"app": app}}


async def pods(cluster: Harness, app: str = "web") -> list[Object]:
    """Returns the pods with the label `app`."""
    found: list[Object] = (await cluster.of(PODS).list(label_selector=f"app={app}"))["items"]
    return found


async def make_ready(cluster: Harness, found: Iterable[Object] | None = None, ready: bool = True) -> None:
    """Makes pods run and be ready (or not ready any more); by default all pods that aren't being deleted."""
    chosen = [pod for pod in await pods(cluster) if not pod["metadata"].get("deletionTimestamp")]
    for pod in chosen if found is None else found:
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": rfc3339(cluster.clock.now()),
        }
        status: dict[str, Any] = {"phase": "Running", "conditions": [condition]}
        with suppress(StatusError):  # a controller may have deleted it meanwhile
            await cluster.of(PODS, NAMESPACE).patch(pod["metadata"]["name"], {"status": status}, "status")
    await cluster.settle()
