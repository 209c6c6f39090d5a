"""The operator written with lightkube: a loop over a watch, which starts again after every error."""

import os
import sys
import time

from lightkube import ApiError, Client
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import PatchType

BUG = os.environ.get("BUG", "")
FINALIZER = "example.com/index"
Website = create_namespaced_resource("example.com", "v1", "Website", "websites")


def reconcile(client: Client, site: Website) -> None:
    meta = site.metadata
    if meta.deletionTimestamp:
        if FINALIZER in (meta.finalizers or ()):
            if BUG != "finalizer":
                change_index(client, meta, None)
            set_finalizers(client, meta, None)
        return
    title = site.spec["title"]
    if (site.status or {}).get("title") == title:
        return
    set_finalizers(client, meta, [FINALIZER])
    write_page(client, meta, title)
    change_index(client, meta, title)
    status = {"status": {"title": title}}
    client.patch(Website.Status, meta.name, status, namespace=meta.namespace, patch_type=PatchType.MERGE)


def set_finalizers(client: Client, meta: ObjectMeta, finalizers: list[str] | None) -> None:
    patch = {"metadata": {"finalizers": finalizers}}
    client.patch(Website, meta.name, patch, namespace=meta.namespace, patch_type=PatchType.MERGE)


def write_page(client: Client, meta: ObjectMeta, title: str) -> None:
    owner = OwnerReference("example.com/v1", "Website", meta.name, meta.uid, controller=True)
    named = {"generateName": f"{meta.name}-page-"} if BUG == "timeout" else {"name": f"{meta.name}-page"}
    page = ConfigMap(
        metadata=ObjectMeta(
            **named,
            namespace=meta.namespace,
            labels={"site": meta.name},
            ownerReferences=[] if BUG == "create" else [owner],
        ),
        data={"title": title},
    )
    try:
        client.create(page)
    except ApiError as error:
        if error.status.code != 409:
            raise
        if BUG != "update":
            client.patch(ConfigMap, page.metadata.name, {"data": {"title": title}}, namespace=meta.namespace)


def change_index(client: Client, meta: ObjectMeta, title: str | None) -> None:
    index = client.get(ConfigMap, "index", namespace=meta.namespace)
    index.data = {site: other for site, other in (index.data or {}).items() if site != meta.name}
    if title is not None:
        index.data[meta.name] = title
    try:
        client.replace(index)
    except ApiError:
        if BUG != "conflict":
            raise


def main() -> None:
    client = Client()
    while True:
        try:
            for event, site in client.watch(Website, namespace="*"):
                if event != "DELETED":
                    reconcile(client, site)
        except Exception as error:
            if BUG == "outage" and not isinstance(error, ApiError):
                sys.exit(str(error))
            time.sleep(0.1)


main()
