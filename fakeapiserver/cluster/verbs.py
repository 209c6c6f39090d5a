"""`cluster.apply`, `get`, `list`, `delete` and `wait`: what kubectl's commands of these names do.

Resources are named as kubectl takes them: `pods`, `po`, `Pod`, `deployment.apps`, `deploy/web`, `widgets.example.com`; or by an object.
The requests are those of the user `fakeapiserver:cluster`, who may do everything and doesn't count in `cluster.rbac`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.dynamic import JSON_PATCH, MERGE_PATCH, DeleteOptions
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.cluster import resources as resources_module
from fakeapiserver.cluster import waiting
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.projects.manifests import Sources, read_all

if TYPE_CHECKING:
    from fakeapiserver.cluster.resources import Resources

Objects = list[Object]  # inside the class, `list` is the verb
Resource = str | Mapping[str, Any]
Predicate = Callable[[Object], object]


class AsyncVerbs(ABC):
    """Reads, writes and awaits objects of any kind, as plain dicts."""

    _resources: "Resources | None" = None

    @property
    @abstractmethod
    def _server(self) -> LocalServer:
        """The running server."""

    async def apply(
        self,
        objects: Sources,
        *,
        namespace: str | None = None,
        field_manager: str = "fakeapiserver",
        force: bool = False,
    ) -> Objects:
        """Server-side apply of objects: a file, a folder, an object, a text of YAML or JSON, or a list of these. Returns the objects
        as the server has stored them, in the order in which they were applied.

        Namespaces come first, then definitions, each of which is established before the next object; the rest keeps its order.
        - `namespace`: that of objects that name none; by default `default`.
        - `force`: take fields from other field managers instead of raising StatusError (409).

        OSError, ValueError: the objects can't be read. LookupError: a kind is not served. StatusError: the server refuses an object,
        e.g. because of an unknown field; the objects before it are stored."""
        resources = self._opened()
        return [
            await resources.apply(obj, field_manager, namespace, force=force)
            for obj in resources_module.in_order([*read_all(objects)])
        ]

    async def patch(
        self,
        resource: Resource,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        namespace: str | None = None,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Changes an object by a merge patch, or by a JSON patch if `patch` is a list, and returns it:
        `patch("deploy/web", {"spec": {"replicas": 3}})`. The namespace is `default` by default. `dry_run`: nothing is stored.

        Raises StatusError for an unknown object or a change that is refused, LookupError for an unknown resource."""
        reference = await self._opened().reference(resource, "", namespace)
        parts = (subresource,) if subresource else ()
        if isinstance(patch, Mapping):
            return await reference.client.patch(
                reference.name, dict(patch), *parts, patch_type=MERGE_PATCH, dry_run=dry_run
            )
        changes = [dict(each) for each in patch]
        return await reference.client.patch(reference.name, changes, *parts, patch_type=JSON_PATCH, dry_run=dry_run)

    async def get(self, resource: Resource, name: str = "", namespace: str | None = None) -> Object:
        """Returns an object: `get("deployment", "web")` or `get("deploy/web")`. The namespace is `default` by default.

        Raises StatusError (404) for an unknown object, LookupError for an unknown resource.
        """
        reference = await self._opened().reference(resource, name, namespace)
        return await reference.client.get(reference.name)

    async def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        all_namespaces: bool = False,
    ) -> Objects:
        """The objects of a resource in a namespace, by default `default`. LookupError: there is no such resource."""
        resources = self._opened()
        mapping = await resources.mapping(resource)
        client = resources.client(mapping, "" if all_namespaces else namespace)
        objects = await client.list(label_selector=label_selector, field_selector=field_selector)
        group_version = mapping.gvk.group_version
        return [{"apiVersion": str(group_version), "kind": mapping.gvk.kind, **item} for item in objects["items"]]

    async def delete(
        self,
        resource: Resource,
        name: str = "",
        namespace: str | None = None,
        *,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
        grace: int | None = None,
        ignore_not_found: bool = False,
    ) -> None:
        """Deletes one object. Returns when the server has accepted this; `wait(…, "delete")` waits until the object is gone.

        - `propagation`: what becomes of the objects that it owns, as kubectl's --cascade.
        - `grace`: seconds; by default the object's own, 0 deletes at once.

        StatusError (404): there is no such object, unless `ignore_not_found`."""
        reference = await self._opened().reference(resource, name, namespace)
        options = DeleteOptions(propagation_policy=propagation)
        if grace is not None:
            options["grace_period_seconds"] = grace
        try:
            await reference.client.delete(reference.name, **options)
        except StatusError as error:
            if not (ignore_not_found and is_not_found(error)):
                raise

    async def wait(
        self,
        resource: Resource,
        name: str = "",
        condition: str = "",
        *,
        jsonpath: str = "",
        predicate: Predicate | None = None,
        namespace: str | None = None,
        timeout: float = 30.0,
    ) -> Object | None:
        """Waits until something holds for an object, and returns the object (None if it was deleted): `wait("deploy", "web",
        "Available")` or `wait("deploy/web", "Available")`. One of these says what:

        - `condition`: a type of status.conditions (`Available`, `Ready=false`), `delete` or `create`, as kubectl's --for.
        - `jsonpath`: `{.status.phase}=Running`, or `{.status.loadBalancer.ingress}` for any value.
        - `predicate`: a function of the object that returns whether the wait is over.

        The object may be created meanwhile, unlike kubectl's. Changes are watched, not polled. `timeout` is in real seconds, also when
        the cluster's clock is stopped. TimeoutError: its text shows the object as it was last, its last events and its last writer.
        LookupError: there is no such resource. ValueError: nothing to wait for is given, or it can't be read."""
        if name and not condition and (isinstance(resource, Mapping) or "/" in resource):
            name, condition = "", name
        uid = resource.get("metadata", {}).get("uid") if isinstance(resource, Mapping) else None
        goal = waiting.goal_of(condition, jsonpath, predicate, uid)
        resources = self._opened()
        return await waiting.wait_for(resources, await resources.reference(resource, name, namespace), goal, timeout)

    def _opened(self) -> "Resources":
        if self._resources is None:
            self._resources = resources_module.Resources(self._server)
        return self._resources

    def _close_resources(self) -> None:
        if self._resources is not None:
            self._resources.close()
            self._resources = None
