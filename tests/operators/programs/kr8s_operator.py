"""The operator written with kr8s: a loop over a watch, which starts again after every error."""

import os
import sys
import time

import kr8s
from kr8s.objects import ConfigMap, new_class

BUG = os.environ.get("BUG", "")
FINALIZER = "example.com/index"
Website = new_class("Website", "example.com/v1", namespaced=True, asyncio=False)


def reconcile(site: Website) -> None:
    if site.metadata.get("deletionTimestamp"):
        if FINALIZER in site.metadata.get("finalizers", ()):
            if BUG != "finalizer":
                change_index(site, None)
            site.patch({"metadata": {"finalizers": None}})
        return
    title = site.spec["title"]
    if site.raw.get("status", {}).get("title") == title:
        return
    site.patch({"metadata": {"finalizers": [FINALIZER]}})
    write_page(site, title)
    change_index(site, title)
    site.patch({"status": {"title": title}}, subresource="status")


def write_page(site: Website, title: str) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Website", "name": site.name, "uid": site.metadata["uid"]}
    named = {"generateName": f"{site.name}-page-"} if BUG == "timeout" else {"name": f"{site.name}-page"}
    metadata = {**named, "namespace": site.namespace, "labels": {"site": site.name}}
    if BUG != "create":
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    page = ConfigMap({"metadata": metadata, "data": {"title": title}})
    try:
        page.create()
    except kr8s.ServerError as error:
        if error.response.status_code != 409:
            raise
        if BUG != "update":
            page.patch({"data": {"title": title}})


def change_index(site: Website, title: str | None) -> None:
    index = ConfigMap.get("index", namespace=site.namespace)
    metadata = {"resourceVersion": index.metadata["resourceVersion"]}
    try:
        index.patch({"metadata": metadata, "data": {site.name: title}})
    except kr8s.ServerError:
        if BUG != "conflict":
            raise


def main() -> None:
    while True:
        try:
            for event, site in kr8s.watch(Website, namespace=kr8s.ALL):
                if event != "DELETED":
                    reconcile(site)
        except Exception as error:
            if BUG == "outage" and not isinstance(error, kr8s.ServerError):
                sys.exit(str(error))
            time.sleep(0.1)


main()
