"""PUT (upstream: k8s.io/apiserver/pkg/endpoints/handlers/update.go)."""

from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.meta import Object, dedup_owner_references, metadata
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs import create
from fakeapiserver.endpoints.verbs.create import write_request
from fakeapiserver.endpoints.verbs.options import WriteOptions, write_options
from fakeapiserver.registry.generic.write_request import Transform


async def update(request: Request, scope: RequestScope) -> Response:
    info, store = request.info, scope.store
    assert store is not None
    options, obj = await decoded(request, scope)
    wanted = write_request(request, scope, options, info.name)
    wanted.uid_precondition = metadata(obj).get("uid", "")
    creates = store.strategy.allow_create_on_update and info.subresource in ("", "status")
    written = await store.write(wanted, replacement(obj), create=creates)
    return respond.stored_object(request, scope, written.value, 201 if written.created else 200)


async def decoded(request: Request, scope: RequestScope) -> tuple[WriteOptions, Object]:
    """The options of a PUT, and its object."""
    require_name(request)
    options = write_options(request.query, "UpdateOptions")
    respond.accepted(request, scope)
    obj = await create.decoded(request, scope, options)
    match_name(obj, request.info.name)
    if duplicates := dedup_owner_references(metadata(obj)):
        request.warnings.append(duplicates)
    return options, obj


def require_name(request: Request) -> None:
    """StatusError 400 for a path without a name, which only custom resources have."""
    if not request.info.name:
        raise new_bad_request("name must be provided")


def replacement(obj: Object) -> Transform:
    """A transform that replaces whatever is there by the object."""
    return lambda current: {**obj, "metadata": dict(metadata(obj))}


def match_name(obj: Object, name: str) -> None:
    """StatusError 400 unless the object has the path's name (upstream: checkName)."""
    own = metadata(obj).get("name", "")
    if not own:
        raise new_bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if own != name:
        raise new_bad_request(f"the name of the object ({own}) does not match the name on the URL ({name})")
