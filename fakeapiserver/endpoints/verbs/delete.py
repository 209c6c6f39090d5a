"""DELETE of one object (upstream: k8s.io/apiserver/pkg/endpoints/handlers/delete.go)."""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import Status, StatusError, new_conflict, new_invalid
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs.create import write_request
from fakeapiserver.endpoints.verbs.delete_options import read_delete_options
from fakeapiserver.endpoints.verbs.options import (
    IGNORE_READ_ERRORS,
    DeleteOptions,
    WriteOptions,
    unsafe_deletion_errors,
)
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.write_request import WriteRequest

DELETE_OPTIONS: Final = GroupKind("meta.k8s.io", "DeleteOptions")
_READABLE: Final = (
    "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because "
    "the object is decodable from storage"
)


async def delete(request: Request, scope: RequestScope) -> Response:
    store = scope.store
    assert store is not None
    accept = respond.accepted(request, scope)
    options = await read_delete_options(request, scope.kind.definitions)
    if ignores_read_errors(scope, options):
        raise await _no_corrupt_object(scope, request)
    warn_of_orphans(request, scope, options)
    wanted = delete_request(request, scope, options, request.info.name)
    written = await store.deleter.delete(wanted, deletion_of(options))
    if written.deleted and not store.strategy.returns_deleted_object:
        return respond.encoded(
            request, _success(scope.resource.gvr.group_resource, store.decode(written.value)), accept
        )
    # Accepted only with the older option orphanDependents.
    waits = not written.deleted and options.orphan_dependents is False
    return respond.stored_object(request, scope, written.value, 202 if waits else 200)


def ignores_read_errors(scope: RequestScope, options: DeleteOptions) -> bool:
    """Reports whether the options ask for the deletion of an unreadable object.

    StatusError 422 for other options that contradict this.
    """
    assert scope.store is not None
    features = scope.store.strategy.features
    if not (options.ignore_read_errors and features.enabled("AllowUnsafeMalformedObjectDeletion")):
        return False
    if errors := unsafe_deletion_errors(options, takes_dry_run=features.at_least("v1.37")):
        raise new_invalid(DELETE_OPTIONS, "", errors)
    return True


async def _no_corrupt_object(scope: RequestScope, request: Request) -> StatusError:
    """The error for a deletion of an unreadable object: here, objects can always be read (upstream: corrupt_obj_deleter.go).

    Raises StatusError 404.
    """
    store, info = scope.store, request.info
    assert store is not None
    resource = scope.resource.gvr.group_resource
    if not store.strategy.features.at_least("v1.37"):
        detail = "is exclusively used to delete corrupt object(s), try again by removing this option"
        return new_invalid(GroupKind(*resource), info.name, [field.invalid(IGNORE_READ_ERRORS, True, detail)])
    await store.get(info.namespace, info.name, resource.group)
    return new_conflict(resource, info.name, _READABLE.format(store.key(info.namespace, info.name)))


def warn_of_orphans(request: Request, scope: RequestScope, options: DeleteOptions) -> None:
    """Adds a warning if the kind's dependents are orphaned by default and the client hasn't said what to do with them."""
    assert scope.store is not None
    warning = scope.store.strategy.deletion_warning
    if warning and options.propagation_policy is None and options.orphan_dependents is None:
        request.warnings.append(warning)


def delete_request(request: Request, scope: RequestScope, options: DeleteOptions, name: str) -> WriteRequest:
    wanted = write_request(request, scope, WriteOptions(dry_run=options.dry_run), name)
    wanted.options = _wire_options(options)
    return wanted


def _wire_options(options: DeleteOptions) -> Object:
    preconditions = {"uid": options.uid, "resourceVersion": options.resource_version}
    wire: Object = {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": options.grace_period_seconds,
        "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
        "orphanDependents": options.orphan_dependents,
        "propagationPolicy": options.propagation_policy,
        "dryRun": ["All"] if options.dry_run else None,
    }
    return {key: value for key, value in wire.items() if value is not None}


def deletion_of(options: DeleteOptions) -> Deletion:
    return Deletion(
        grace_period_seconds=options.grace_period_seconds,
        propagation_policy=options.propagation_policy,
        orphan_dependents=options.orphan_dependents,
        uid=options.uid,
        resource_version=options.resource_version,
    )


def _success(resource: GroupResource, obj: Object) -> Status:
    details = {
        "name": metadata(obj).get("name", ""),
        "group": resource.group,
        "kind": resource.resource,
        "uid": metadata(obj).get("uid", ""),
    }
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
