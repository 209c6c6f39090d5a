"""Tests the summaries of large answers."""

from email.message import Message

from conformance.summary import digested, metrics, summarized

DOCUMENT = {
    "info": {"title": "T", "description": "prose"},
    "paths": {"/a": {"get": {"description": "prose", "operationId": "a"}}, "/b": {}},
    "components": {"schemas": {"S": {"properties": {"description": {"type": "string"}}}}},
}


def test_each_path_and_schema_has_a_digest_without_prose() -> None:
    found = digested(DOCUMENT)
    assert found["info"] == {"title": "T"}
    assert found["paths"] == digested({"paths": {"/a": {"get": {"operationId": "a"}}, "/b": {}}})["paths"]
    assert found["components"]["schemas"] != digested({"schemas": {"S": {"properties": {}}}})["schemas"]


def test_a_digest_can_be_of_some_names_only() -> None:
    assert list(digested(DOCUMENT, part="b")["paths"]) == ["/b"]


def test_shown_headers_and_bytes() -> None:
    headers = Message()
    headers["Vary"] = "Accept"
    headers["Vary"] = "Accept-Encoding"
    request = {"show": ["Vary", "ETag"], "digest": True}
    found = summarized(request, {"status": 200, "text": "?"}, headers, b"k8s\0")
    assert found["headers"] == {"Vary": "Accept, Accept-Encoding"}
    assert set(found) == {"status", "headers", "sha256"}


def test_metrics_by_type_and_labels() -> None:
    text = '# TYPE h histogram\nh_bucket{verb="GET",le="1"} 2\nh_count{verb="GET"} 2\n# TYPE g gauge\ng 3\n# TYPE c counter\n'
    assert metrics(text) == {
        "h": {"type": "histogram", "labels": ["verb"]},
        "g": {"type": "gauge", "labels": []},
        "c": {"type": "counter", "labels": None},
    }
