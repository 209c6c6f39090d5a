"""The operator written with kopf and the official client."""

import os

import kopf
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

BUG = os.environ.get("BUG", "")
AGAIN = 0.1  # seconds


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    config.load_kube_config()
    client.CoreV1Api().read_namespaced_config_map("index", "default")  # the first call loads the models, for seconds
    settings.persistence.finalizer = "example.com/index"
    settings.networking.error_backoffs = [] if BUG == "outage" else [AGAIN] * 1000


@kopf.on.create("example.com", "v1", "websites", backoff=AGAIN)
def created(name: str, namespace: str, spec: kopf.Spec, patch: kopf.Patch, **_: object) -> None:
    page = {"metadata": {"name": f"{name}-page", "labels": {"site": name}}, "data": {"title": spec["title"]}}
    if BUG == "timeout":
        page["metadata"] |= {"name": None, "generateName": f"{name}-page-"}
    if BUG != "create":
        kopf.append_owner_reference(page)
    core = client.CoreV1Api()
    try:
        core.create_namespaced_config_map(namespace, page)
    except ApiException as error:
        if error.status != 409:
            raise
        core.patch_namespaced_config_map(f"{name}-page", namespace, page)
    change_index(namespace, name, spec["title"])
    patch.status["title"] = spec["title"]


if BUG != "update":
    kopf.on.update("example.com", "v1", "websites", backoff=AGAIN)(created)


@kopf.on.delete("example.com", "v1", "websites", backoff=AGAIN)
def deleted(name: str, namespace: str, **_: object) -> None:
    if BUG != "finalizer":
        change_index(namespace, name, None)


def change_index(namespace: str, name: str, title: str | None) -> None:
    core = client.CoreV1Api()
    index = core.read_namespaced_config_map("index", namespace)
    index.data = {site: other for site, other in (index.data or {}).items() if site != name}
    if title is not None:
        index.data[name] = title
    try:
        core.replace_namespaced_config_map("index", namespace, index)
    except ApiException as error:
        if BUG == "conflict":
            raise kopf.PermanentError(str(error)) from error
        raise
