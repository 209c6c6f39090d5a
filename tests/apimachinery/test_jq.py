"""jq's language, in rows of (query, outputs); what gojq says."""

from typing import Any

import pytest

from fakeapiserver.languages.jq import JqError, JqSyntaxError, compile_query

POD: dict[str, Any] = {
    "metadata": {
        "name": "web-0",
        "labels": {"app": "web", "a.b/c": "d"},
        "annotations": {"n": "5"},
        "finalizers": ["x", "y"],
    },
    "spec": {
        "replicas": 3,
        "flag": True,
        "off": False,
        "nothing": None,
        "list": [1, 2, 3],
        "names": ["b", "a", "c", "a"],
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("query", "outputs"),
    [
        (".metadata.name", ["web-0"]),
        ('.metadata.labels["a.b/c"], .metadata.labels."a.b/c"', ["d", "d"]),
        ('.status.conditions.[] | select( .type == "Ready" ) | .status', ["True"]),
        (".foo.bar", [None]),
        (".spec.list[1:], .spec.list[-1], .spec.list[9]", [[2, 3], 3, None]),
        (".spec.off // \"d\", .spec.nothing // 1", ["d", 1]),
        ("[.spec.list[] | select(. > 1)]", [[2, 3]]),
        ("reduce .spec.list[] as $x (0; . + $x)", [6]),
        ("[foreach .spec.list[] as $x (0; . + $x; [$x, .])]", [[[1, 1], [2, 3], [3, 6]]]),
        ('if .spec.replicas > 5 then "many" elif .spec.flag then "flag" else 0 end', ["flag"]),
        (".spec.list as [$a, $b] | $a + $b", [3]),
        (".status.conditions[0] as {type: $t, $status} | [$t, $status]", [["Ready", "True"]]),
        ("def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; 5 | fac", [120]),
        ("def f($x; g): $x + g; f(1; 2, 3)", [3, 4]),
        ('"\\(.metadata.name)-x", @base64 "\\(1 + 1)"', ["web-0-x", "Mg=="]),
        ("{(.metadata.name): 1, b: (2, 3)}", [{"web-0": 1, "b": 2}, {"web-0": 1, "b": 3}]),
        ("try error(\"x\") catch ., (.spec.flag.x)?", ["x"]),
        ("label $out | 1, break $out, 2", [1]),
        (".spec.list |= map(. * 2) | .spec.list", [[2, 4, 6]]),
        (".spec.replicas += 1 | .spec.replicas", [4]),
        ("del(.metadata.labels, .spec) | [paths(scalars)] | length", [8]),
        (".metadata.labels | with_entries(.value |= ascii_upcase)", [{"a.b/c": "D", "app": "WEB"}]),
        (".spec.names | sort, unique, index(\"a\"), join(\",\")", [["a", "a", "b", "c"], ["a", "b", "c"], 1, "b,a,c,a"]),
        (".status.conditions | any(.type == \"Ready\"), all(.status == \"True\")", [True, False]),
        (".status.conditions | group_by(.status) | map(.[0].type)", [["Initialized", "Ready"]]),
        ('.metadata.name | test("WEB"; "i"), sub("(?<a>w)"; "\\(.a)x"), [scan("[a-z]")]', [True, "wxeb-0", ["w", "e", "b"]]),
        (".metadata.annotations.n | tonumber + 1", [6]),
        ('"2026-01-02T03:04:05Z" | (fromdate + 60 | todate)', ["2026-01-02T03:05:05Z"]),
        ("10 / 4, 10 / 5, -5 % 2", [2.5, 2, -1]),
        ("[limit(2; repeat(1))] | length, ([range(0; 10; 3)])", [2, [0, 3, 6, 9]]),
        ("[.. | .type? // empty]", [["Ready", "Initialized"]]),
        ("now", [7.0]),
        ("$ENV, env", [{}, {}]),
    ],
)  # fmt: skip
def test_outputs(query: str, outputs: list[Any]) -> None:
    assert compile_query(query).run(POD, now=7.0) == outputs


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (".a.", "unexpected end of query"),
        (".[", "unexpected end of query"),
        ('"abc', "unterminated string"),
        (".a | | .b", 'unexpected token "|"'),
        ("foo(1)", "function not defined: foo/1"),
        ("$x", "variable not defined: $x"),
        (". as $x | $y", "variable not defined: $y"),
        ("input", "function not defined: input/0"),
        ("if . then", "unexpected end of query"),
        ("break $x", "label not defined: $x"),
        (".a & .b", "unexpected '&' at 3"),
        ("(" * 500, "nested too deep"),
    ],
)
def test_what_is_no_query(query: str, problem: str) -> None:
    with pytest.raises(
        JqSyntaxError, match=problem.replace("$", r"\$").replace("|", r"\|").replace("(", r"\(")
    ) as error:
        compile_query(query)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (".metadata.name.x", "expected an object but got: string"),
        (".spec.flag[]", "cannot iterate over: boolean"),
        ("1 / 0", "cannot divide"),
        ('1 - "a"', "cannot subtract"),
        ("def f: f; f", "too"),
        ("[range(infinite)]", "more than 1000000 steps"),
        ("try def f: f, f; f catch 1", "too"),
        ('"a" * 1e9', "too long"),
        ("[1] | .[1e9] = 2", "too large"),
        ('"a" | test("(")', "invalid regular expression"),
    ],
)
def test_failures_end(query: str, problem: str) -> None:
    with pytest.raises(JqError, match=problem):
        compile_query(query).run(POD)
