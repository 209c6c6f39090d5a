"""Objects that lack what allocation and validation look at are refused as by kube-apiserver, not with 500."""

import asyncio

import pytest

from tests.endpoints.in_process import Answer, serving

NAMES = {"kind": "a/b", "plural": "a/b"}
DEFINITION = {"metadata": {"name": "a"}, "spec": {"group": "b", "names": NAMES, "preserveUnknownFields": True}}


@pytest.mark.parametrize(
    ("path", "body", "complaint"),
    [
        ("/api/v1/namespaces/default/services", {}, "spec.parentRef.name: Required value"),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION, "spec.versions: Invalid value: null"),
    ],
)
def test_an_incomplete_object_is_refused(path: str, body: object, complaint: str) -> None:
    async def scenario() -> Answer:
        async with serving() as server:
            return await server.ask("POST", path, body)

    answer = asyncio.run(scenario())
    assert answer.status == 422
    assert complaint in answer.body["message"]
