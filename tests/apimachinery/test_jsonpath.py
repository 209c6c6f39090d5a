"""Paths that can't be read."""

import re

import pytest

from fakeapiserver.apimachinery.jsonpath import compile_path


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("{1.2.3.4}", "cannot parse number 1.2.3.4"),
        ("{\0}", "unrecognized character in action: U+0000"),
        ("{!}", "unrecognized character in action: U+0021 '!'"),
    ],
)
def test_what_is_wrong_with_a_path(path: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        compile_path(path.strip("{}"))
