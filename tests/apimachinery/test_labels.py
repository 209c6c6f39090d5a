"""Label selectors and field selectors, as upstream's lexer and parser read them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapiserver.apimachinery import fields, labels


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


@given(
    st.lists(
        st.sampled_from(
            ("a", "a=1", "a=2", "b==1", "a!=1", "a!=x", "!b", "!c", "a in (1,2)", "a in (2,x)", "b notin (1)")
        )
    ),
    st.lists(st.sampled_from(("a>1", "a>3", "a<9", "a<2", "b>0"))),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from(("", "x", "1", "2", "3", "-3", "99999999999999999999"))),
)
def test_a_matcher_selects_what_its_selector_selects(
    some: list[str], others: list[str], of_object: dict[str, str]
) -> None:
    selector = labels.parse(",".join([*some, *others]))
    assert labels.Matcher(selector)(of_object) == selector.matches(of_object)


@pytest.mark.parametrize("selector", [labels.EVERYTHING, labels.NOTHING])
def test_a_matcher_of_everything_and_nothing(selector: labels.Selector) -> None:
    assert labels.Matcher(selector)({"a": "b"}) == selector.matches({"a": "b"})


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        ("", True),
        ("a=1", True),
        ("a=1,a==1", True),
        ("a=1,a=2", False),
        ("a!=2,a!=3,b!=1", True),
        ("a!=2,a!=1", False),
        ("a=1,b=", True),
        ("b=1", False),
        ("b!=", False),
    ],
)
def test_a_field_selector_selects(text: str, selects: bool) -> None:
    assert fields.parse(text).matches({"a": "1"}) == selects
