"""The custom resource Database, the objects that operators make for it, and the scenarios of these examples."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.client.errors import StatusError, is_already_exists, is_conflict, is_invalid, is_not_found
from fakeapiserver.controller_runtime import (
    Client,
    ControllerOptions,
    Manager,
    Reconciler,
    Request,
    controller_managed_by,
    gvk,
)
from fakeapiserver.controller_runtime.client import Reader
from fakeapiserver.controller_runtime.controllerutil import set_controller_reference

DATABASE: Final = gvk("example.com/v1", "Database")
CLAIM: Final = gvk("v1", "PersistentVolumeClaim")
CONFIG_MAP: Final = gvk("v1", "ConfigMap")
SECRET: Final = gvk("v1", "Secret")
SERVICE: Final = gvk("v1", "Service")
DISRUPTION_BUDGET: Final = gvk("policy/v1", "PodDisruptionBudget")
POD: Final = gvk("v1", "Pod")
STATEFUL_SET: Final = gvk("apps/v1", "StatefulSet")
FINALIZER: Final = "example.com/cleanup"
INTEGER: Final = {"type": "integer", "minimum": 0, "maximum": 5}
BOOLEAN: Final = {"type": "boolean"}
TEXT: Final = {"type": "string", "maxLength": 20}
TEXTS: Final = {"type": "object", "additionalProperties": TEXT}

Object = dict[str, Any]


def definition(spec: Mapping[str, Any]) -> Object:
    """The CustomResourceDefinition of Database with these fields of the spec."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": {"type": "object", "properties": dict(spec)}, "status": anything},
    }
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "databases.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Database", "plural": "databases", "singular": "database", "listKind": "DatabaseList"},
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def database(**spec: Any) -> Object:
    """A manifest of the Database `db`."""
    return {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "db"}, "spec": spec}


def create(**spec: Any) -> Object:
    """The step that creates the Database `db`."""
    return {"apply": database(**spec)}


def change(**spec: Any) -> Object:
    """The step that changes fields of its spec."""
    return {"patch": "databases/db", "with": {"spec": spec}}


DELETE: Final = {"delete": "databases/db"}


def child(parent: Object, kind: Any, name: str, content: Object, *, owned: bool = True) -> Object:
    """An object of a Database, which is deleted with it if it is `owned`."""
    namespace = parent["metadata"]["namespace"]
    made = {
        "apiVersion": str(kind.group_version),
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace},
    }
    if owned:
        set_controller_reference(parent, made)
    return {**made, **content}


def claim(parent: Object, name: str, storage: str = "1Gi") -> Object:
    """A PersistentVolumeClaim, which outlives the Database unless the operator deletes it."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage}},
        "storageClassName": "disks",
    }
    return child(parent, CLAIM, name, {"spec": spec}, owned=False)


def stateful_set(parent: Object, replicas: int, **container: Any) -> Object:
    """A StatefulSet without claims of its own."""
    name = parent["metadata"]["name"]
    containers = [{"name": "database", "image": "database:1", **container}]
    template = {"metadata": {"labels": {"database": name}}, "spec": {"containers": containers}}
    selector = {"matchLabels": {"database": name}}
    spec = {"serviceName": name, "replicas": replicas, "selector": selector, "template": template, **_AT_ONCE}
    return child(parent, STATEFUL_SET, name, {"spec": spec})


def service(parent: Object, name: str, port: int = 5432) -> Object:
    """A Service with one port."""
    return child(parent, SERVICE, name, {"spec": {"ports": [{"name": "sql", "port": port}]}})


def pod(parent: Object, name: str) -> Object:
    """A Pod that nothing restarts but the operator."""
    return child(parent, POD, name, {"spec": {"containers": [{"name": "database", "image": "database:1"}]}})


async def ensure(client: Client, obj: Object) -> None:
    """Creates an object that may be there already."""
    try:
        await client.create(obj)
    except StatusError as error:
        if not is_already_exists(error):
            raise


async def remove(client: Client, obj: Object) -> None:
    """Deletes an object that may be gone already, or may be another one of the same name by now."""
    try:
        await client.delete(obj)
    except StatusError as error:
        if not is_not_found(error) and not is_conflict(error):
            raise


def is_deleted(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


async def add_finalizer(client: Client, parent: Object) -> Object:
    """The Database with the finalizer."""
    if FINALIZER in parent["metadata"].get("finalizers", ()):
        return parent
    patched: Object = await client.patch(parent, {"metadata": {"finalizers": [FINALIZER]}})
    return patched


async def remove_finalizer(client: Client, parent: Object) -> None:
    """Lets a Database go that is being deleted, unless another one has its name by now."""
    try:
        await client.patch(parent, {"metadata": {"uid": parent["metadata"]["uid"], "finalizers": None}})
    except StatusError as error:
        if not is_not_found(error) and not is_invalid(error):
            raise


async def live(server: Reader, request: Request) -> Object | None:
    """The Database as the API server has it, and not the cache, or None."""
    try:
        return await server.get(DATABASE, request.name, request.namespace)
    except StatusError as error:
        if is_not_found(error):
            return None
        raise


class Operator:
    """A reconciler of Databases, with the bug or repaired. Its reads come from the cache (`_client`) or from the API server (`_server`).
    `field_owner`: the owner of the fields that it applies."""

    def __init__(self, manager: Manager, bug: bool, field_owner: str = "") -> None:
        self._client = manager.client.with_options(field_owner=field_owner) if field_owner else manager.client
        self._server = manager.api_reader
        self._bug = bug

    async def _read(self, request: Request) -> Object | None:
        """The Database from the cache, or, if the operator is repaired, from the API server: a cache may be of the past."""
        if self._bug:
            cached: Object | None = await self._client.find(DATABASE, request.name, request.namespace)
            return cached
        return await live(self._server, request)


def control(manager: Manager, reconciler: Reconciler, *owned: Any, recover_panic: bool = True) -> None:
    """Adds a controller of Databases and what they own."""
    builder = controller_managed_by(manager).for_(DATABASE)
    for kind in owned:
        builder.owns(kind)
    builder.with_options(ControllerOptions(recover_panic=recover_panic)).complete(reconciler)


def scenario(spec: Mapping[str, Any], steps: Sequence[Object], nodes: int = 0) -> Object:
    """A scenario as a document: in the cluster there is a volume for a claim."""
    volume = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "disks"}
    objects = [
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disks"}, **_EXPANSION},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk-1"},
            "spec": {**volume, "hostPath": {"path": "/disk"}},
        },
        definition(spec),
    ]
    return {"objects": objects, "nodes": nodes, "steps": [*steps]}


_AT_ONCE: Final = {"podManagementPolicy": "Parallel"}
_EXPANSION: Final = {"provisioner": "kubernetes.io/no-provisioner", "allowVolumeExpansion": True}
