"""Label selectors, as upstream's lexer and parser read them."""

import re

import pytest

from fakeapiserver.apimachinery import labels


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("", ""),
        (" a , b = c ", "a,b=c"),
        ("a==b,c!=d,!e", "a==b,c!=d,!e"),
        ("a in (,)", "a in ()"),
        ("a notin (x, y)", "a notin (x,y)"),
        ("a>1,b<2", "a>1,b<2"),
        # A NUL ends a token, or the text where a token should start.
        ("a=b\0", "a=b"),
        ("a=\0b", "a=b"),
        ("a \0=b", "a"),
        ("\0a", ""),
    ],
)
def test_a_selector_is_read(text: str, selector: str) -> None:
    assert str(labels.parse(text)) == selector


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(", "found '(', expected: !, identifier, or 'end of string'"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a!=!b", "unable to parse requirement: found '!', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a\0b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a,\0", "found '', expected: identifier after ','"),
    ],
)
def test_what_is_no_selector_is_refused_in_upstream_s_words(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        labels.parse(text)
