"""Lists by themselves: revisions that don't exist yet."""

import asyncio

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.endpoints.verbs.list import find
from fakeapiserver.endpoints.verbs.options import list_options
from tests.endpoints.in_process import serving

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    "query",
    [
        "resourceVersion=123456",
        "resourceVersion=123456&limit=1",
        "resourceVersion=123456&resourceVersionMatch=Exact",
        "resourceVersion=123456&resourceVersionMatch=NotOlderThan",
    ],
)
def test_the_refusal_of_a_revision_of_the_future_names_it(query: str) -> None:
    async def run() -> None:
        async with serving() as server:
            scope = server.api.scopes.lookup("", "v1", "configmaps")
            assert scope is not None
            request = server.request("GET", f"{MAPS}?{query}")
            now = server.api.storage.revision
            with pytest.raises(StatusError) as refused:
                await find(request, scope, list_options(request.query))
            message = f"Too large resource version: 123456, current: {now}"
            assert (refused.value.code, refused.value.message.endswith(message)) == (504, True), refused.value.message

    asyncio.run(run())
