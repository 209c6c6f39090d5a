"""The first filter: what a request asks for, from its method, path and query.

Upstream: k8s.io/apiserver/pkg/endpoints/filters/requestinfo.go, pkg/endpoints/request/requestinfo.go.
"""

from functools import partial
from typing import Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.auth.attributes import ENTITIES
from fakeapiserver.effort import computed
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Answered, Request
from fakeapiserver.endpoints.request_info import NoResource, RequestInfo, known_request_info, request_info
from fakeapiserver.endpoints.verbs.options import boolean, field_selector, list_options

_UNPROCESSABLE: Final = 422


async def request_info_of(request: Request) -> RequestInfo:
    """Returns the verb, resource, namespace and name of a request. Raises Answered with 500 for a path that can't be parsed."""
    if not request.query:
        return parsed_request_info(request)
    return await computed(partial(parsed_request_info, request), request.query_size)


def parsed_request_info(request: Request) -> RequestInfo:
    """Does what request_info_of does, at once."""
    try:
        if not request.query:
            return known_request_info(request.method, request.path)
        return request_info(
            request.method,
            request.path,
            watch=boolean(request.query, "watch"),
            name_selector=_selected_name(request),
        )
    except NoResource:
        raise _without_info(request) from None


def _without_info(request: Request) -> Answered:
    """500 as text (upstream: responsewriters.InternalError, before any other filter)."""
    target = request.scope["raw_path"].decode("latin-1")
    if query := request.scope["query_string"]:
        target += "?" + query.decode("latin-1")
    why = f"failed to create RequestInfo: unable to determine kind and namespace from url, {target}"
    message = f"Internal Server Error: {go_quote(target)}: {why}\n"
    response = respond.text(500, message.translate(ENTITIES))
    response.cache_control = b""
    return Answered(response)


def _selected_name(request: Request) -> str:
    """Returns the name that a list's field selector requires, so that `resourceNames` in RBAC can allow it. Empty if any option
    can't be parsed: upstream parses all at once, and the list itself reports the error.
    """
    if not (text := request.param("fieldSelector")):
        return ""
    try:
        selector = list_options(request.query).field_selector
    except StatusError as error:
        if error.status["code"] != _UNPROCESSABLE:
            return ""
        selector = field_selector(text)  # the options can be parsed, but contradict each other
    name = selector.requires_exact_match("metadata.name") if selector is not None else None
    return name if name and not names.path_segment_name(name, False) else ""
