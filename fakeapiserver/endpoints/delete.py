"""DELETE of one object (upstream: k8s.io/apiserver/pkg/endpoints/handlers/delete.go)."""

from typing import Final

from fakeapiserver.apimachinery.errors import Status, new_bad_request
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.body import decode_body, not_registered
from fakeapiserver.endpoints.create import write_request
from fakeapiserver.endpoints.negotiation import body_media_type
from fakeapiserver.endpoints.options import DeleteOptions, WriteOptions, delete_options
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.store import WriteRequest

_META_V1: Final = GroupVersion("meta.k8s.io", "v1")


async def delete(request: Request, scope: RequestScope) -> Response:
    store = scope.store
    assert store is not None
    accept = respond.accepted(request, scope)
    options = await read_delete_options(request)
    wanted = delete_request(request, scope, options, request.info.name)
    written = await store.delete(wanted, deletion_of(options))
    if written.deleted and not store.strategy.returns_deleted_object:
        return respond.encoded(
            request, _success(scope.resource.gvr.group_resource, store.decode(written.value)), accept
        )
    # Accepted only where the client uses the old way to ask for dependents' deletion.
    waits = not written.deleted and options.orphan_dependents is False
    return respond.stored_object(request, scope, written.value, 202 if waits else 200)


async def read_delete_options(request: Request) -> DeleteOptions:
    """From the body, or from the query where there is none. StatusError 400, 415 and 422."""
    data = await request.body()
    if not data:
        return delete_options(request.query, None)
    try:
        document, _ = decode_body(data, body_media_type(request.header(b"content-type")))
    except ValueError as error:
        raise new_bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(document, dict):
        raise new_bad_request(
            "couldn't get version/kind; json parse error: json: cannot unmarshal the body into DeleteOptions"
        )
    _check_type(document)
    return delete_options(request.query, document)


def _check_type(document: Object) -> None:
    kind = document.get("kind") or "DeleteOptions"
    # Every group registers DeleteOptions in its own version, so any apiVersion will do for the right kind.
    if kind != "DeleteOptions":
        group_version = GroupVersion.parse(document.get("apiVersion") or str(_META_V1))
        raise new_bad_request(not_registered(GroupVersionKind(*group_version, kind)))


def delete_request(request: Request, scope: RequestScope, options: DeleteOptions, name: str) -> WriteRequest:
    return write_request(request, scope, WriteOptions(dry_run=options.dry_run), name)


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
