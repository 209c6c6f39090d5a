"""Another server's OpenAPI v2 document in this one's. Upstream: kube-openapi/pkg/aggregator/aggregator_test.go."""

from typing import Any

from fakeapiserver.endpoints.openapi.merge import below, merged

Json = dict[str, Any]


def answers(definition: str) -> Json:
    return {"get": {"responses": {"200": {"schema": {"$ref": f"#/definitions/{definition}"}}}}}


def holder(of: str, **more: Any) -> Json:
    return {"type": "object", "properties": {"a": {"$ref": f"#/definitions/{of}"}}, **more}


def test_only_what_the_kept_paths_need_is_kept() -> None:
    document = {
        "paths": {"/apis/a/v1/x": answers("X"), "/apis/b/v1/y": answers("Y")},
        "definitions": {"X": holder("Part"), "Part": {"type": "string"}, "Y": {"type": "object"}},
    }
    assert below(document, "/apis/a/v1/") == {
        "paths": {"/apis/a/v1/x": answers("X")},
        "definitions": {"X": holder("Part"), "Part": {"type": "string"}},
        "parameters": {},
    }


def test_a_path_that_is_there_stays_as_it_is() -> None:
    own = {"paths": {"/a": answers("X")}, "definitions": {"X": {"type": "object"}}}
    found = merged(own, {"paths": {"/a": answers("Y")}, "definitions": {"Y": {"type": "string"}}})
    assert found["paths"] == {"/a": answers("X")}
    assert found["definitions"] == {"X": {"type": "object"}}


def test_definitions_of_one_name_that_differ_get_another() -> None:
    own = {"paths": {}, "definitions": {"X": {"type": "object"}, "X_v2": {"type": "integer"}}}
    other = {"paths": {"/b": answers("Y")}, "definitions": {"X": {"type": "string"}, "Y": holder("X")}}
    found = merged(own, other)
    assert found["definitions"] == {**own["definitions"], "X_v3": {"type": "string"}, "Y": holder("X_v3")}
    assert merged(found, {**other, "paths": {"/c": answers("X")}})["paths"]["/c"] == answers("X_v3")


def test_kinds_and_prose_make_no_difference() -> None:
    gvk = "x-kubernetes-group-version-kind"
    first, second = ({"group": group, "version": "v1", "kind": "DeleteOptions"} for group in ("a", "b"))
    own = {"paths": {}, "definitions": {"X": {"type": "object", gvk: [first]}}}
    other = {"paths": {"/b": answers("X")}, "definitions": {"X": {"type": "object", "description": "d", gvk: [second]}}}
    assert merged(own, other)["definitions"] == {"X": {"type": "object", gvk: [first, second]}}
