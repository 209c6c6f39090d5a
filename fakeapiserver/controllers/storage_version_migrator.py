"""Writes each object of a resource again, so that it is stored in the current storage version.

Upstream: pkg/controller/storageversionmigrator. Three queues: one starts the oldest migration of each resource and
updates its definition
(migrationrunner.go), one records the resource version up to which objects are to be written (resourceversion.go), one writes them
(storageversionmigrator.go). Upstream has the objects from the garbage collector's caches; here they are listed when
they are needed.
Runs with the feature gate StorageVersionMigrator, which is on since 1.37.
Does nothing while the server has no StorageVersionMigrations.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import rfc3339, seconds_of
from fakeapiserver.client.cache.indexer import DeletedFinalStateUnknown
from fakeapiserver.client.cache.shared_informer import Tombstone
from fakeapiserver.client.discovery import APIResource
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found, is_too_many_requests
from fakeapiserver.client.rest_mapper import NoMatchError
from fakeapiserver.client.wait import retry_on_conflict
from fakeapiserver.component_helpers.conditions import find_condition, set_status_condition
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import CUSTOM_RESOURCE_DEFINITIONS
from fakeapiserver.component_helpers.resource_monitors import Monitor, ResourceMonitors
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.reconcile import ReconcilerFunc, Request, Result

log = logging.getLogger(__name__)

# In the version that the server prefers: v1 since 1.37.
STORAGE_VERSION_MIGRATIONS: Final = GroupResource("storagemigration.k8s.io", "storageversionmigrations")
_WORKERS: Final = 5
_RUNNER: Final = "migration-runner-controller"
_RESOURCE_VERSIONS: Final = "resource-version-controller"
# No namespace can have this name: a list of it is empty, and has the newest resource version.
_NO_NAMESPACE: Final = "@fake:svm_ns!"
_VERBS: Final = ("update", "patch", "list")
# What the garbage collector's caches have: other resources can't be migrated.
_CACHED: Final = {"delete", "list", "watch"}
_NOT_CACHED: Final = (GroupResource("", "events"), GroupResource("events.k8s.io", "events"))
_PAGE: Final = 500
# Seconds that a new resource has to become known.
_PATIENCE: Final = 60.0
_RUNNING_MESSAGE: Final = "The migration is running"
_RETRIABLE: Final = ("ServerTimeout", "ServiceUnavailable", "InternalError", "Timeout")


class NotYet(Exception):
    """Something isn't known, and may be soon."""


class Progress(Struct):
    """Counts the objects, and those that are left to migrate."""

    left: int
    total: int


class MigrationFailed(Exception):
    """The migration failed for good; the text goes into the condition. `progress`: if it had begun."""

    def __init__(self, why: str, progress: Progress | None = None) -> None:
        super().__init__(why)
        self.progress = progress


class StorageVersionMigrator:
    """Requests of the runner are definitions' names (`widgets.example.com`), the others' are migrations."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._clock = context.clock
        self._says_progress = context.configuration.feature_gates.at_least("v1.37")
        self._definitions = context.client.resource(CUSTOM_RESOURCE_DEFINITIONS)
        self._monitors = ResourceMonitors(
            context,
            ("list", "watch"),
            lambda resource: resource.gvr.group_resource == STORAGE_VERSION_MIGRATIONS,
            lambda resource: _Handler(self),
            whole=(STORAGE_VERSION_MIGRATIONS,),
        )
        self._runner = context.controller(ReconcilerFunc(self.run_oldest), name=_RUNNER)
        self._versions = context.controller(ReconcilerFunc(self.note_resource_version), name=_RESOURCE_VERSIONS)
        self._migrator = context.controller(ReconcilerFunc(self.migrate), workers=_WORKERS)
        monitors = self._monitors.controller(f"{context.name}-sync")
        self.controllers = (monitors, self._runner, self._versions, self._migrator)

    def changed(self, migration: Object, *, deleted: bool = False) -> None:
        self._runner.queue.add(Request("", _definition_name(migration)))
        if not deleted:
            request = Request("", migration["metadata"]["name"])
            self._versions.queue.add(request)
            self._migrator.queue.add(request)

    @property
    def _monitor(self) -> Monitor | None:
        """The monitor of migrations, or None if the server has none."""
        return next(iter(self._monitors.monitors.values()), None)

    def _all(self) -> Sequence[Object]:
        return self._monitor.informer.indexer.list() if self._monitor is not None else ()

    def _migration(self, name: str) -> Object | None:
        return self._monitor.informer.indexer.get_by_key(name) if self._monitor is not None else None

    # ------------------------------------------------------------------------------------- which one runs

    async def run_oldest(self, request: Request) -> None:
        """Starts the oldest migration of a resource; one runs at a time."""
        migrations = [migration for migration in self._all() if _definition_name(migration) == request.name]
        for migration in migrations:
            if _is(migration, "Running") and _is_terminal(migration):
                await self._stop(migration)
        if any(_is(migration, "Running") and not _is_terminal(migration) for migration in migrations):
            return
        waiting = [
            migration for migration in migrations if not _is(migration, "Running") and not _is_terminal(migration)
        ]
        if waiting:
            await self._run(min(waiting, key=_age))

    async def _run(self, migration: Object) -> None:
        name = migration["metadata"]["name"]

        async def mark() -> None:
            definition = await self._definition(migration)
            if definition is not None:
                await self._tell(definition, "True", "MigrationRunning", f"Migration {name} is running")

        await retry_on_conflict(mark)
        await self._update(_with_condition(migration, "Running", "MigrationRunning", _RUNNING_MESSAGE, self._now))

    async def _stop(self, migration: Object) -> None:
        """Ends a migration that succeeded or failed."""

        async def finish() -> None:
            definition = await self._definition(migration)
            if definition is not None:
                await self._finish(definition, succeeded=_is(migration, "Succeeded"))

        await retry_on_conflict(finish)
        conditions = set_status_condition(
            migration["status"]["conditions"],
            "Running",
            "False",
            "MigrationCompleted",
            self._now,
            message="Migration completed",
            observed_generation=migration["metadata"].get("generation", 0),
        )
        await self._update({**migration, "status": {**migration["status"], "conditions": conditions}})

    async def _finish(self, definition: Object, *, succeeded: bool) -> None:
        """The stored versions are those that nothing was stored in since, unless the definition changed meanwhile."""
        if not succeeded:
            await self._tell(definition, "False", "MigrationFailed", "The migration has failed")
            return
        condition = find_condition((definition.get("status") or {}).get("conditions"), "StorageMigrating")
        generation = definition["metadata"].get("generation", 0)
        message, stored = "The migration has succeeded", None
        if condition is not None and condition.get("observedGeneration", 0) == generation:
            message += " and the stored versions have been updated"
            stored = [version["name"] for version in definition["spec"]["versions"] if version.get("storage")][:1]
        else:
            message += " but the stored versions have not been updated due to a generation mismatch"
        await self._tell(definition, "False", "MigrationSucceeded", message, stored)

    async def _tell(
        self, definition: Object, status: str, reason: str, message: str, stored: Sequence[str] | None = None
    ) -> None:
        """The definition's condition; fails where the definition has changed since it was read."""
        metadata = definition["metadata"]
        condition = {
            "type": "StorageMigrating",
            "status": status,
            "lastTransitionTime": rfc3339(self._now),
            "reason": reason,
            "message": message,
            "observedGeneration": metadata.get("generation", 0),
        }
        wanted = {
            "apiVersion": str(CUSTOM_RESOURCE_DEFINITIONS.group_version),
            "kind": "CustomResourceDefinition",
            "metadata": {"name": metadata["name"], "resourceVersion": metadata["resourceVersion"]},
            "status": {"conditions": [condition], **({"storedVersions": stored} if stored else {})},
        }
        await self._definitions.apply_status(wanted, force=True, field_manager=_RUNNER)

    async def _definition(self, migration: Object) -> Object | None:
        """Returns the resource's definition, or None if the resource isn't custom."""
        try:
            return await self._definitions.get(_definition_name(migration))
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    # ------------------------------------------------------------------------------------- up to where

    async def note_resource_version(self, request: Request) -> None:
        migration = self._migration(request.name)
        if migration is None or not _is(migration, "Running") or _is_terminal(migration) or _noted_version(migration):
            return
        try:
            version = await self._newest_version(migration)
        except MigrationFailed as failure:
            await self._fail(migration, str(failure))
            return
        await self._update({**migration, "status": {**(migration.get("status") or {}), "resourceVersion": version}})

    async def _newest_version(self, migration: Object) -> str:
        resource = await self._resource_of(migration)
        if resource is None:
            if self._is_new(migration):
                raise NotYet("resource does not exist in our rest mapper, requeuing to attempt again")
            raise MigrationFailed("resource does not exist in discovery")
        if not {*_VERBS} <= {*resource.verbs}:
            verbs = " ".join(_VERBS)
            raise MigrationFailed(f'resource "{_shown(resource.gvr)}" does not support discovery operations: [{verbs}]')
        namespace = _NO_NAMESPACE if resource.namespaced else ""
        newest = await self._context.client.resource(resource.gvr, namespace, metadata_only=True).list(limit=1)
        version: str = newest["metadata"].get("resourceVersion", "")
        try:
            _ordered(version)
        except ValueError as error:
            raise MigrationFailed(f"latest resourceVersion for {_shown(resource.gvr)} is not valid: {error}") from None
        return version

    # ------------------------------------------------------------------------------------- all objects

    async def migrate(self, request: Request) -> Result | None:
        migration = self._migration(request.name)
        if migration is None or _is_terminal(migration) or not _noted_version(migration):
            return None
        resource = await self._resource_of(migration)
        try:
            if resource is None:
                if self._is_new(migration):
                    raise NotYet("resource does not exist in rest mapper, requeuing to attempt again")
                raise MigrationFailed("unable to obtain GVR from discovery")
            if resource.gvr.group_resource in _NOT_CACHED or not {*resource.verbs} >= _CACHED:
                raise NotYet(f"no monitor found for resource {_shown(resource.gvr)}")
            progress = await self._write_all(migration, resource)
        except MigrationFailed as failure:
            message = f"migration encountered unhandled error: {failure}"
            if self._says_progress and (stopped := failure.progress) is not None:
                message = f"{stopped.left}/{stopped.total} not yet migrated. {message}"
                migration = self._with_progress(migration, stopped)
            await self._fail(migration, message)
            return None
        except StatusError as error:
            delay = (error.status.get("details") or {}).get("retryAfterSeconds", 0)
            if not delay:
                raise
            log.info("%s of %s is tried again in %d s: %s", self._context.name, request, delay, error)
            return Result(requeue_after=delay)
        message = ""
        if self._says_progress:
            message, migration = "Migration completed", self._with_progress(migration, progress)
        succeeded = _with_condition(migration, "Succeeded", "StorageVersionMigrationSucceeded", message, self._now)
        await self._update(succeeded)
        return None

    def _with_progress(self, migration: Object, progress: Progress, error: StatusError | None = None) -> Object:
        """Returns the migration with a condition that says how far it is, and the error after which it will be tried again."""
        message = _RUNNING_MESSAGE
        if progress.left:
            message += f", {progress.left}/{progress.total} objects not yet migrated"
        elif progress.total:
            message += f", {progress.total} objects verified migrated"
        message += f"; transient error: {error}" if error is not None else ""
        conditions = set_status_condition(
            _conditions(migration), "Running", "True", "MigrationRunning", self._now, message=message
        )
        return {**migration, "status": {**(migration.get("status") or {}), "conditions": conditions}}

    async def _write_all(self, migration: Object, resource: APIResource) -> Progress:
        """Writes the objects that were not written since the migration began.

        Raises MigrationFailed, and errors after which it can be tried again.
        """
        try:
            limit = _ordered(_noted_version(migration))
        except ValueError as error:
            raise MigrationFailed(f"error comparing resource versions between GC and SVM resource: {error}") from None
        everything = [metadata async for metadata in self._metadata(resource)]
        try:
            old = [metadata for metadata in everything if _ordered(metadata["resourceVersion"]) <= limit]
        except ValueError as error:
            raise MigrationFailed(str(error)) from None
        progress = Progress(len(old), len(everything))
        for metadata in old:
            try:
                await self._write(resource, metadata)
            except StatusError as error:
                if error.reason not in _RETRIABLE and not is_too_many_requests(error):
                    raise MigrationFailed(str(error), progress) from error
                if self._says_progress:
                    await self._update(self._with_progress(migration, progress, error))
                raise
            progress.left -= 1
        return progress

    async def _metadata(self, resource: APIResource) -> AsyncIterator[Object]:
        objects = self._context.client.resource(resource.gvr, metadata_only=True)
        token = ""
        while True:
            page = await objects.list(limit=_PAGE, continue_=token)
            for obj in page.get("items") or ():
                yield obj["metadata"]
            token = page["metadata"].get("continue", "")
            if not token:
                return

    async def _write(self, resource: APIResource, metadata: Object) -> None:
        """Changes nothing of the object, which is written all the same.

        An apply needs uid and resourceVersion, which prevent that a deleted object is created again.
        """
        objects = self._context.client.resource(resource.gvr, metadata.get("namespace", ""))
        identity = {key: metadata[key] for key in ("name", "uid", "resourceVersion")}
        nothing = {"apiVersion": str(resource.gvr.group_version), "kind": resource.kind.kind, "metadata": identity}
        try:
            if self._says_progress:
                del identity["name"], identity["uid"]
                await objects.patch(metadata["name"], nothing, field_manager=self._context.name)
            else:
                await objects.apply(nothing, field_manager=self._context.name)
        except StatusError as error:
            # another client has written or deleted it
            if not is_conflict(error) and not (self._says_progress and is_not_found(error)):
                raise

    # ------------------------------------------------------------------------------------- what all do

    @property
    def _now(self) -> float:
        return self._clock.now()

    def _is_new(self, migration: Object) -> bool:
        created = seconds_of(migration["metadata"].get("creationTimestamp") or "") or 0.0
        return created + _PATIENCE > self._now

    async def _resource_of(self, migration: Object) -> APIResource | None:
        """In the version that the server prefers; None: it has no such resource."""
        named = migration["spec"]["resource"]
        wanted = GroupResource(named.get("group", ""), named["resource"])
        try:
            gvr = await self._context.mapper.resource_for(GroupVersionResource(wanted.group, "", wanted.resource))
        except NoMatchError:
            return None
        if gvr.group_resource != wanted:
            return None
        for group in await self._context.discovery.groups():
            for resource in group.versions.get(gvr.version, ()):
                if resource.gvr == gvr:
                    return resource
        return None

    async def _fail(self, migration: Object, message: str) -> None:
        await self._update(_with_condition(migration, "Failed", "StorageVersionMigrationFailed", message, self._now))

    async def _update(self, migration: Object) -> None:
        assert self._monitor is not None  # which the migration is from
        gvr = self._monitor.resource.gvr
        kind = {"apiVersion": str(gvr.group_version), "kind": "StorageVersionMigration"}
        await self._context.client.resource(gvr).update_status({**kind, **migration})


class _Handler(Struct, frozen=True):
    """Queues migrations."""

    migrator: StorageVersionMigrator

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        self.migrator.changed(obj)

    def on_update(self, old: Object, new: Object) -> None:
        self.migrator.changed(new)

    def on_delete(self, obj: Tombstone) -> None:
        last = obj.object if isinstance(obj, DeletedFinalStateUnknown) else obj
        self.migrator.changed(last, deleted=True)


def _definition_name(migration: Object) -> str:
    resource = migration["spec"]["resource"]
    return f"{resource['resource']}.{resource.get('group', '')}"


def _conditions(migration: Object) -> Sequence[Any]:
    return (migration.get("status") or {}).get("conditions") or ()


def _is(migration: Object, condition_type: str) -> bool:
    condition = find_condition(_conditions(migration), condition_type)
    return condition is not None and condition["status"] == "True"


def _is_terminal(migration: Object) -> bool:
    return _is(migration, "Succeeded") or _is(migration, "Failed")


def _noted_version(migration: Object) -> str:
    return str((migration.get("status") or {}).get("resourceVersion") or "")


def _age(migration: Object) -> tuple[str, str]:
    """The oldest first; those of one second by name."""
    return migration["metadata"]["creationTimestamp"], migration["metadata"]["name"]


def _with_condition(migration: Object, condition_type: str, reason: str, message: str, now: float) -> Object:
    """Set once: what it says already stays."""
    conditions = [*_conditions(migration)]
    old = find_condition(conditions, condition_type)
    if old is None or old["status"] not in ("True", "False"):
        conditions.append(
            {
                "type": condition_type,
                "status": "True",
                "lastTransitionTime": rfc3339(now),
                "reason": reason,
                "message": message,
            }
        )
    return {**migration, "status": {**(migration.get("status") or {}), "conditions": conditions}}


def _ordered(version: str) -> int:
    """A resource version of which it can be said which one is newer. ValueError."""
    if not (version.isascii() and version.isdigit()) or version.startswith("0"):
        raise ValueError(f"resource version is not well formed: {version}")
    return int(version)


def _shown(gvr: GroupVersionResource) -> str:
    return f"{gvr.group}/{gvr.version}, Resource={gvr.resource}"


def new(context: ControllerContext) -> Sequence[Controller]:
    return StorageVersionMigrator(context).controllers
