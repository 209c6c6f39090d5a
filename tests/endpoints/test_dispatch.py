"""Requests for resources find their handlers, or the refusal of a path or verb that isn't served."""

import asyncio

import pytest

from tests.endpoints.in_process import Answer, serving

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
            {"name": "v2", "served": False, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}
UNKNOWN = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
MUX = "404 page not found\n"


def answers(*requests: tuple[str, str]) -> list[Answer]:
    async def run() -> list[Answer]:
        async with serving() as server:
            await server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS)
            return [await server.ask(*request) for request in requests]

    return asyncio.run(run())


SERVED = [
    ("GET", "/api/v1/pods"),
    ("GET", "/api/v1/namespaces/default/pods"),
    ("GET", "/api/v1/nodes"),
    ("GET", "/apis/apps/v1/deployments"),
    ("GET", "/apis/example.com/v1/widgets"),
    ("GET", "/apis/example.com/v1/namespaces/default/widgets"),
]
REFUSED = [
    ("GET", "/api/v1/foos", 404, UNKNOWN),
    ("GET", "/apis/apps/v1/foos", 404, UNKNOWN),
    ("GET", "/apis/apps/v9/deployments", 404, UNKNOWN),
    ("GET", "/api/v1/namespaces/default/pods/x/foo", 404, UNKNOWN),
    ("GET", "/api/v1/namespaces/default/nodes", 404, UNKNOWN),
    ("PATCH", "/api/v1/pods", 405, NOT_ALLOWED),
    ("POST", "/api/v1/namespaces/default/pods/x", 405, NOT_ALLOWED),
    ("DELETE", "/api/v1/componentstatuses/x", 405, NOT_ALLOWED),
    ("PUT", "/apis/example.com/v1/namespaces/default/widgets", 400, "name must be provided"),
]


def test_what_is_served() -> None:
    assert [answer.status for answer in answers(*SERVED)] == [200] * len(SERVED)


def test_what_is_refused_with_a_status() -> None:
    found = answers(*((method, path) for method, path, _, _ in REFUSED))
    assert [(answer.status, answer.body["message"]) for answer in found] == [(code, text) for *_, code, text in REFUSED]


@pytest.mark.parametrize(
    "path", ["/apis/other.example.com/v1/widgets", "/apis/example.com/v2/widgets", "/apis/example.com/v1/foos"]
)
def test_gos_mux_knows_no_path_of_other_groups(path: str) -> None:
    assert answers(("GET", path)) == [(404, MUX)]
