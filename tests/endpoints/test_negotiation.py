"""Tests which media type a client gets, and which bodies are read, as a real server decides it."""

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.endpoints.negotiation.media_types import (
    CBOR,
    JSON,
    PROTOBUF,
    WITH_CBOR,
    YAML,
    Accept,
    body_media_type,
    negotiate,
)

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_METADATA = "application/yaml;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io"

CHOSEN = {
    "": Accept(JSON),
    "*/*": Accept(JSON),
    "application/*,*/*": Accept(JSON),
    "application/yaml;q=0.5,application/json;q=0.4": Accept(YAML),
    "application/json;q=0,application/yaml;q=0": Accept(JSON),
    "application/json;q=x,application/yaml": Accept(YAML),
    "*/*,application/yaml": Accept(YAML),
    "application/xml, application/json ; charset=utf-8": Accept(JSON),
    "application/json;pretty=1": Accept(JSON, pretty=True),
    "application/json;pretty=true": Accept(JSON),
    "application/json;stream=watch": Accept(JSON),
    "application/json;sv=v1": Accept(JSON),
    "application/json;as=": Accept(JSON),
    "application/vnd.kubernetes.protobuf,application/json": Accept(PROTOBUF),
    _TABLE: Accept(JSON, "Table", "v1"),
    f"application/json;as=Table;v=v2;g=meta.k8s.io,{_METADATA}": Accept(YAML, "PartialObjectMetadata", "v1beta1"),
}


@pytest.mark.parametrize("header", CHOSEN)
def test_the_best_clause_that_can_be_met_is_chosen(header: str) -> None:
    assert negotiate(header) == CHOSEN[header]


@pytest.mark.parametrize(
    "header",
    [
        "application/json;stream=foo",
        "application/yaml;stream=watch",
        "application/json;sv=v2",
        "application/json;v=v1",
        'application/json;as="Table";v="v1";g="meta.k8s.io"',
        "application/json;as=Table;v=v1",
        "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
    ],
)
def test_an_unknown_media_type_is_406(header: str) -> None:
    with pytest.raises(StatusError, match=r"^only the following media types are accepted: ") as refused:
        negotiate(header)
    assert refused.value.code == 406


@pytest.mark.parametrize(
    "header", ["application/xml", "application", "application/json/x", "APPLICATION/JSON", "*/json"]
)
def test_an_unknown_media_type_is_rejected_by_the_router(header: str) -> None:
    with pytest.raises(StatusError, match=r"^406: Not Acceptable"):
        negotiate(header)


def test_custom_resources_have_protobuf_for_their_metadata_only() -> None:
    form = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    assert negotiate(PROTOBUF + form, custom=True).media_type == PROTOBUF
    with pytest.raises(StatusError):
        negotiate(PROTOBUF, custom=True)


@pytest.mark.parametrize(
    "header",
    ["", "application/json", "Application/JSON; charset=utf-8", 'application/json;a="x;y"', "application/json;"],
)
def test_json_bodies(header: str) -> None:
    assert body_media_type(header) == JSON


@pytest.mark.parametrize("header", ["text/plain", "json", "application/json; x", "application/json;a=1;A=2", "a/b/c"])
def test_bodies_of_no_known_type_are_415(header: str) -> None:
    with pytest.raises(StatusError) as refused:
        body_media_type(header)
    assert refused.value.code == 415


def test_cbor_is_spoken_where_its_gate_is_on_and_nowhere_else() -> None:
    assert body_media_type(CBOR, WITH_CBOR) == CBOR
    assert negotiate(CBOR, supported=WITH_CBOR) == Accept(CBOR)
    for refuses in (body_media_type, negotiate):
        with pytest.raises(StatusError):
            refuses(CBOR)


@pytest.mark.parametrize("form", ["Table", "PartialObjectMetadata"])
def test_tables_have_no_form_in_cbor_but_metadata_has(form: str) -> None:
    header = f"{CBOR};as={form};v=v1;g=meta.k8s.io,{JSON}"
    assert negotiate(header, supported=WITH_CBOR).media_type == (JSON if form == "Table" else CBOR)
