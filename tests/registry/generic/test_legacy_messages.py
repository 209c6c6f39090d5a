"""Older versions' messages about the same mistakes."""

import pytest

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.message import Message, joined
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.registry.generic.legacy_messages import decoding_errors_of, worded

DECODING = "json: cannot unmarshal bool into Go struct field Volume.spec.volumes.{}nfs of type v1.NFSVolumeSource"


@pytest.mark.parametrize(("version", "unit"), [("v1.34", "characters"), ("v1.35", "bytes"), (NEWEST, "bytes")])
def test_older_versions_have_their_own_words(version: str, unit: str) -> None:
    [error] = names.is_qualified_name("a" * 64)
    assert worded(error, version) == f"name part must be no more than 63 {unit}"


def test_messages_that_are_put_together_keep_their_rules() -> None:
    first, second = names.max_length_error(63), Message("must have at most 1 item", "max-1-item")
    text = "labels: " + joined("; ", [first, "too bad", second]) + "!"
    assert text == "labels: must be no more than 63 bytes; too bad; must have at most 1 item!"
    assert worded(text, "v1.33") == "labels: must be no more than 63 characters; too bad; must have at most 1 items!"


def test_older_decoders_leave_out_embedded_structs() -> None:
    reword = decoding_errors_of("v1.33")
    assert reword is not None
    assert reword(DECODING.format("VolumeSource.")) == DECODING.format("")
    assert decoding_errors_of(NEWEST) is None
