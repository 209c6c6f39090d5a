"""DELETE of a collection (upstream: handlers/delete.go DeleteCollection, registry/generic/registry/store.go)."""

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.delete import delete_request, deletion_of, warn_of_orphans
from fakeapiserver.endpoints.delete_options import read_delete_options
from fakeapiserver.endpoints.list import answer, find
from fakeapiserver.endpoints.options import list_options
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope


async def deletecollection(request: Request, scope: RequestScope) -> Response:
    """Deletes each object as a DELETE by name would; an object that is gone meanwhile is no error. Answers the list of the objects as
    they were found."""
    store = scope.store
    assert store is not None
    accept = respond.accepted(request, scope)
    options = list_options(request.query)
    deletion = await read_delete_options(request, scope.kind.definitions)
    warn_of_orphans(request, scope, deletion)
    found = await find(request, scope, options, pages=True)
    for item in found.items:
        namespace, _, name = item.key.removeprefix(store.prefix).rpartition("/")
        wanted = delete_request(request, scope, deletion, name)
        wanted.namespace, wanted.of_collection = namespace, True
        try:
            await store.delete(wanted, deletion_of(deletion))
        except StatusError as error:
            if error.code != 404:
                raise
    return await answer(request, scope, accept, found, options)
