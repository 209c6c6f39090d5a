"""DELETE of one object (upstream: k8s.io/apiserver/pkg/endpoints/handlers/delete.go)."""

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import Status, StatusError, new_invalid
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


async def delete(request: Request, scope: RequestScope) -> Response:
    store = scope.store
    assert store is not None
    accept = respond.accepted(request, scope)
    options = await read_delete_options(request, scope.kind.definitions)
    if options.ignore_read_errors and store.strategy.features.enabled("AllowUnsafeMalformedObjectDeletion"):
        raise _no_corrupt_object(scope, options, request.info.name)
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


def _no_corrupt_object(scope: RequestScope, options: DeleteOptions, name: str) -> StatusError:
    """StatusError for a deletion of an unreadable object: here, objects can always be read (upstream: corrupt_obj_deleter.go)."""
    if errors := unsafe_deletion_errors(options):
        return new_invalid(GroupKind("meta.k8s.io", "DeleteOptions"), "", errors)
    detail = "is exclusively used to delete corrupt object(s), try again by removing this option"
    resource = scope.resource.gvr.group_resource
    return new_invalid(GroupKind(*resource), name, [field.invalid(IGNORE_READ_ERRORS, True, detail)])


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
