"""DELETE of a collection (upstream: handlers/delete.go DeleteCollection, registry/generic/registry/store.go)."""

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.endpoints import respond, selection
from fakeapiserver.endpoints.delete import delete_request, deletion_of, read_delete_options
from fakeapiserver.endpoints.list import answer
from fakeapiserver.endpoints.options import list_options
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.storage.interface import ListResult


async def deletecollection(request: Request, scope: RequestScope) -> Response:
    """Each object goes through the same deletion as if it were asked for by name; what is gone meanwhile is no error."""
    store = scope.store
    assert store is not None
    options = list_options(request.query)
    deletion = await read_delete_options(request)
    accept = respond.accepted(request, scope)
    predicate = selection.predicate(options, request.info, scope)
    prefix = store.collection(request.info.namespace)
    found = await store.storage.list(prefix, predicate=predicate, limit=max(options.limit, 0))
    for item in found.items:
        namespace, _, name = item.key.removeprefix(store.prefix).rpartition("/")
        wanted = delete_request(request, scope, deletion, name)
        wanted.namespace = namespace
        try:
            await store.delete(wanted, deletion_of(deletion))
        except StatusError as error:
            if error.code != 404:
                raise
    meta = {"resourceVersion": str(found.revision)}
    return await answer(request, scope, accept, ListResult(found.items, found.revision, 0, False), meta)
