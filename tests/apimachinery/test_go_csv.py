"""CSV as Go reads it: token files, and flags that are lists."""

import re

import pytest

from fakeapiserver.apimachinery.go_csv import record, records


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("a,b\r\n\n c ,\n", [(1, ["a", "b"]), (3, [" c ", ""])]),
        ('"a,b","say ""hi""",""', [(1, ["a,b", 'say "hi"', ""])]),
        ('"two\nlines",x\ny', [(1, ["two\nlines", "x"]), (3, ["y"])]),
    ],
)
def test_records(text: str, found: list[tuple[int, list[str]]]) -> None:
    assert list(records(text)) == found


def test_a_flag_is_one_record() -> None:
    assert (record('a,"b,c",'), record("")) == (["a", "b,c", ""], [])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('x\na,ü"b', 'parse error on line 2, column 5: bare " in non-quoted-field'),
        ('a,"b"c', 'parse error on line 1, column 5: extraneous or missing " in quoted-field'),
        ('a,"b\nc', 'record on line 1; parse error on line 2, column 2: extraneous or missing " in quoted-field'),
    ],
)
def test_errors_have_their_position(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        list(records(text))
