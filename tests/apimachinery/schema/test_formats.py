"""Formats of strings: what a real kube-apiserver 1.36.3 takes for each of `format_cases.json`'s texts."""

import json
from pathlib import Path
from time import process_time

import pytest

from fakeapiserver.apimachinery.schema.formats import FORMATS, is_known_format

CASES = json.loads((Path(__file__).parent / "format_cases.json").read_text())
NAMES = [
    "bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10",
    "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "date-time", "k8s-short-name",
    "k8s-long-name",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_formats_have_the_real_servers_messages(name):
    assert is_known_format(name, "string")
    is_valid = FORMATS[name.replace("-", "")]
    assert [text for text in CASES if is_valid(text)] == [text for text in CASES if name in CASES[text]]


# Texts on which a backtracking regular expression would take longer than anyone waits.
@pytest.mark.parametrize("piece", ["a", "1", "0", ".", "a.", "1.", "1 ", '"', "(", "1h", ":", "-", "a@"])
@pytest.mark.parametrize("end", ["", "!", "\x00", "@"])
def test_long_texts_take_almost_no_time(piece, end):
    begin = process_time()
    for is_valid in FORMATS.values():
        is_valid(piece * 20_000 + end)
    assert process_time() - begin < 5


@pytest.mark.parametrize(
    ("name", "text", "is_valid"),
    [
        ("duration", "9223372036854775807ns", True),
        ("duration", "9223372036854775808ns", False),
        ("duration", "-9223372036854775808ns", True),
        ("duration", "2562047h47m16.854775808s", True),  # as one of Scala's
        ("isbn", "978-3-16-148410-0", True),
        ("isbn", "978-3-\u00a016-148410-0", False),
    ],
)
def test_limits_of_go(name: str, text: str, is_valid: bool) -> None:
    assert FORMATS[name](text) == is_valid
