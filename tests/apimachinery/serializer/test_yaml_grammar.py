"""YAML that libyaml reads in another way than Go's library, a port of an older libyaml: values and errors of kube-apiserver 1.36.3."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.serializer import yaml
from fakeapiserver.apimachinery.serializer.go_json import YAMLError

READ: dict[str, Any] = {
    "[?a]": [{"a": None}],
    "{?a: b}": {"a": "b"},
    "[a, ?b]": ["a", {"b": None}],
    "['a?', \"b?\"]": ["a?", "b?"],
    "a?b: c?": {"a?b": "c?"},
    "!!str, x": "x",
    "!!s[tr x": "x",
    "[!!str, x]": ["x"],
    "{k: !!str , b: c}": {"k": "", "b": "c"},
    "[a:, b]": ["a:", "b"],
    "{a:,b: c}": {"a:": None, "b": "c"},
    "{a: b::}": {"a": "b::"},
    "[a:b]": ["a:b"],
    "'\\/'": "\\/",
    '"\\\\/"': "\\/",
}
REFUSED = {
    "[a?b]": "did not find expected ',' or ']'",
    "[a ? b]": "did not find expected ',' or ']'",
    "{k: v?}": "did not find expected ',' or '}'",
    "{k?: v}": "did not find expected ',' or '}'",
    "x:\n- [a,\n  b?]": "line 2: did not find expected ',' or ']'",
    "{a: ?b}": "did not find expected node content",
    "{a:[b]}": "did not find expected ',' or '}'",
    "[!!str,x]": "did not find expected ',' or ']'",
    "{k: !!str, b: c}": "did not find expected ',' or '}'",
    "{k: !!str,}": "did not find expected whitespace or line break",
    "{\nvalue:,\n: key}": "line 2: did not find expected node content",
    '"\\/"': "found unknown escape character",
    'x: y\nz: "a\n  \\/"': "line 3: found unknown escape character",
}


@pytest.mark.parametrize("text", READ)
def test_read(text: str) -> None:
    assert yaml.decode(text.encode()) == READ[text]


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(YAMLError) as refused:
        yaml.decode(text.encode())
    assert str(refused.value) == f"yaml: {REFUSED[text]}"


def test_a_long_text_is_not_read_a_second_time_by_a_slow_parser() -> None:
    assert yaml.decode(b"[a?b, " + b"c," * 40_000 + b"]")[0] == "a?b"


@pytest.mark.parametrize("text", ["[" * 10_001, '{"a":' * 10_001, "[" * 100_000])
def test_more_levels_than_ten_thousand_are_refused(text: str) -> None:
    """Newer releases of libyaml end at a thousand, in other words."""
    with pytest.raises(YAMLError, match=r"^yaml: exceeded max depth of 10000$"):
        yaml.decode(text.encode())
