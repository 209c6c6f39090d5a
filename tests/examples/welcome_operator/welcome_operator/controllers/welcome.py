"""Brings every Welcome to what its spec wants: a Deployment and a Service, applied by the server."""

import time
from typing import Any

from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.controller_runtime import Manager, Request, Result, controller_managed_by, gvk
from fakeapiserver.controller_runtime.controllerutil import set_controller_reference
from fakeapiserver.controller_runtime.markers import rbac
from fakeapiserver.controller_runtime.models import set_condition

from welcome_operator.api.v1alpha1.welcome import Welcome, WelcomeStatus

DEPLOYMENT, SERVICE = gvk("apps/v1", "Deployment"), gvk("v1", "Service")
FIELD_OWNER = "welcome-operator"
Object = dict[str, Any]


@rbac(groups=["apps.example.com"], resources=["welcomes"], verbs=["get", "list", "watch"])
@rbac(groups=["apps.example.com"], resources=["welcomes/status"], verbs=["patch"])
@rbac(groups=["apps"], resources=["deployments"], verbs=["get", "list", "watch", "create", "patch"])
@rbac(groups=[""], resources=["services"], verbs=["get", "list", "watch", "create", "patch"])
class WelcomeReconciler:
    """Looks at how things are, and at what is wanted; never at what changed."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client.with_options(field_owner=FIELD_OWNER)
        self._server = manager.client.with_options(reader=manager.api_reader)

    async def reconcile(self, request: Request) -> Result | None:
        welcome = await self._client.find(Welcome, request.name, request.namespace)
        if welcome is None or welcome.metadata.deletion_timestamp:
            return None  # what it owned goes with it
        if not await self._exists(welcome):
            return None  # the cache lags behind: an event will follow
        for wanted in (_deployment(welcome), _service(welcome)):
            set_controller_reference(welcome, wanted)
            await self._client.apply(wanted, force=True)
        await self._report(welcome)
        return None

    async def _exists(self, welcome: Welcome) -> bool:
        """Asks the server itself. In a cache that lags behind, the Welcome may be a deleted one, although another of this name exists
        by now: the garbage collector would delete that one's page if the deleted Welcome became its owner."""
        stored = await self._server.find(Welcome, welcome.metadata.name, welcome.metadata.namespace or "")
        return stored is not None and stored.metadata.uid == welcome.metadata.uid

    async def _report(self, welcome: Welcome) -> None:
        found = await self._client.find(DEPLOYMENT, welcome.metadata.name, welcome.metadata.namespace or "")
        ready = ((found or {}).get("status") or {}).get("readyReplicas", 0)
        is_ready = ready >= welcome.spec.replicas
        status = (welcome.status or WelcomeStatus()).model_copy(deep=True)
        status.observed_generation = welcome.metadata.generation
        status.ready_replicas = ready
        set_condition(
            status.conditions,
            "Ready",
            "True" if is_ready else "False",
            "Available" if is_ready else "Progressing",
            f"{ready} of {welcome.spec.replicas} replicas are ready",
            generation=welcome.metadata.generation,
            now=rfc3339(time.time()),
        )
        if status != welcome.status:
            await self._client.patch_status(welcome, {"status": status.model_dump(by_alias=True, exclude_none=True)})


def _metadata(welcome: Welcome) -> Object:
    labels = {"app.kubernetes.io/name": "welcome", "app.kubernetes.io/instance": welcome.metadata.name}
    return {"name": welcome.metadata.name, "namespace": welcome.metadata.namespace, "labels": labels}


def _deployment(welcome: Welcome) -> Object:
    metadata = _metadata(welcome)
    container = {
        "name": "welcome",
        "image": welcome.spec.image,
        "env": [{"name": "WELCOME_NAME", "value": welcome.spec.name}],
        "ports": [{"name": "http", "containerPort": welcome.spec.port}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": welcome.spec.replicas,
            "selector": {"matchLabels": metadata["labels"]},
            "template": {"metadata": {"labels": metadata["labels"]}, "spec": {"containers": [container]}},
        },
    }


def _service(welcome: Welcome) -> Object:
    metadata = _metadata(welcome)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": "LoadBalancer",
            "selector": metadata["labels"],
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }


def setup_with_manager(manager: Manager) -> None:
    """Adds the controller."""
    builder = controller_managed_by(manager).for_(Welcome).owns(DEPLOYMENT).owns(SERVICE).named("welcome")
    builder.complete(WelcomeReconciler(manager))
