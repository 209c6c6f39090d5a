"""DELETE of a collection (upstream: handlers/delete.go DeleteCollection, registry/generic/registry/store.go)."""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import new_invalid
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs.delete import (
    DELETE_OPTIONS,
    delete_request,
    deletion_of,
    ignores_read_errors,
    warn_of_orphans,
)
from fakeapiserver.endpoints.verbs.delete_options import read_delete_options
from fakeapiserver.endpoints.verbs.list import answer, find
from fakeapiserver.endpoints.verbs.options import IGNORE_READ_ERRORS, DeleteOptions, list_options
from fakeapiserver.registry.generic.write_request import WriteRequest

_NOT_HERE: Final = "is not allowed with DELETECOLLECTION, try again after removing the option"


async def deletecollection(request: Request, scope: RequestScope) -> Response:
    """Deletes each object as a DELETE by name would; objects that are gone meanwhile are ignored.

    Returns the list of the objects.
    """
    store = scope.store
    assert store is not None
    accept = respond.accepted(request, scope)
    options = list_options(request.query)
    deletion = await read_delete_options(request, scope.kind.definitions)
    if ignores_read_errors(scope, deletion):
        raise new_invalid(DELETE_OPTIONS, "", [field.invalid(IGNORE_READ_ERRORS, True, _NOT_HERE)])
    warn_of_orphans(request, scope, deletion)
    page = await find(request, scope, options, pages=True)
    paths = (item.key.removeprefix(store.prefix) for item in page.items)
    requests = (_deletion_request(request, scope, deletion, path) for path in paths)
    await store.deleter.delete_collection(requests, deletion_of(deletion))
    return await answer(request, scope, accept, page, options)


def _deletion_request(request: Request, scope: RequestScope, deletion: DeleteOptions, path: str) -> WriteRequest:
    """The deletion of one object; `path` is its `namespace/name`, or its name."""
    namespace, _, name = path.rpartition("/")
    wanted = delete_request(request, scope, deletion, name)
    wanted.namespace, wanted.of_collection = namespace, True
    return wanted
