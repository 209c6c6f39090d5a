"""Go's templates, in rows of (template, text); what text/template and sprig write."""

from random import Random
from typing import Any

import pytest

from fakeapiserver.languages.gotemplate import Number, TemplateError, parse
from fakeapiserver.languages.gotemplate.sprig.functions import sprig_functions

FUNCTIONS = sprig_functions(lambda: 1_700_000_000.5, Random(1))
DATA: dict[str, Any] = {
    "name": "web-0",
    "labels": {"app": "web", "tier": "front"},
    "replicas": Number("3"),
    "zero": Number("0"),
    "on": True,
    "null": None,
    "names": ["b", "a", "c", "a"],
    "containers": [{"name": "c1"}, {"name": "c2"}],
    "text": 'Hello, <World> & "you"\n',
}


def written(text: str) -> str:
    return parse(text, FUNCTIONS).execute(DATA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ .labels }} {{ .names }} {{ .missing }} {{ .null }}", "map[app:web tier:front] [b a c a] <no value> <no value>"),
        ("{{ .missing.a.b | default \"d\" }}", "d"),
        ("a {{- /* no */ -}} b {{- \"c\" }} {{ `d\\n` -}}   e", "abc d\\ne"),
        ("{{ if .replicas }}1{{ end }}{{ if .zero }}2{{ end }}{{ if .missing }}3{{ else if .on }}4{{ end }}", "124"),
        ('{{ eq .replicas "3" }} {{ eq .missing "a" }} {{ ne 1 2 }} {{ lt "a" "b" }}', "true false true true"),
        ("{{ range $i, $c := .containers }}{{ $i }}={{ $c.name }};{{ else }}none{{ end }}", "0=c1;1=c2;"),
        ("{{ range $k, $v := .labels }}{{ $k }}{{ $v }}{{ end }}{{ range .missing }}x{{ else }}none{{ end }}", "appwebtierfrontnone"),
        ("{{ range until 5 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ if eq . 3 }}{{ break }}{{ end }}{{ . }}{{ end }}", "02"),
        ("{{ $x := 1 }}{{ range 3 }}{{ $x = add $x . }}{{ end }}{{ $x }}", "4"),
        ("{{ with $x := .labels }}{{ $x.app }}{{ .tier }}{{ $.name }}{{ end }}", "webfrontweb-0"),
        ('{{ define "t" }}<{{ . }}>{{ end }}{{ template "t" .name }}{{ block "b" .labels }}{{ .app }}{{ end }}', "<web-0>web"),
        ("{{ or .missing .name }} {{ and .on .zero }} {{ not .on }}", "web-0 0 false"),
        ("{{ index .names 1 }} {{ index .labels \"nope\" }} {{ (index .containers 0).name }} {{ len .names }}", "a <no value> c1 4"),
        ('{{ printf "%s-%03d|%-4s|%q|%5.2f|%v|%t" .name 7 "ab" "x" 3.14159 .names true }}', 'web-0-007|ab  |"x"| 3.14|[b a c a]|true'),
        ('{{ print 1 2 "a" "b" 3 }}', "1 2a b3".replace("a b", "ab")),
        ("{{ 1e6 }} {{ 123456.0 }} {{ 0.00001 }} {{ 0x1F }} {{ 'a' }}", "1e+06 123456 1e-05 31 97"),
        ("{{ .name | upper | quote }} {{ .text | toJson }}", '"WEB-0" "Hello, \\u003cWorld\\u003e \\u0026 \\"you\\"\\n"'),
        ("{{ join \",\" (sortAlpha (uniq .names)) }} {{ has \"a\" .names }} {{ without .names \"a\" }}", "a,b,c true [b c]"),
        ("{{ add .replicas 1 }} {{ div -7 2 }} {{ mod -7 2 }} {{ max 1 5 3 }} {{ round 1.2567 2 }}", "4 -3 -1 5 1.26"),
        ("{{ $d := dict \"a\" 1 }}{{ $_ := set $d \"b\" 2 }}{{ toJson $d }} {{ dig \"x\" \"d\" $d }}", '{"a":1,"b":2} d'),
        ("{{ regexReplaceAll \"a(x*)b\" \"-ab-axxb-\" \"${1}W\" }} {{ regexFind \"[0-9]+\" \"a12b\" }}", "-W-xxW- 12"),
        ('{{ now | date "2006-01-02T15:04:05.000Z07:00" }}', "2023-11-14T22:13:20.500Z"),
        ('{{ now | date_modify "-1h" | unixEpoch }}', "1699996400"),
        ('{{ semverCompare ">=1.2, <2" "1.3.0" }} {{ b64enc "abc" }} {{ ternary "a" "b" .on }}', "true YWJj a"),
    ],
)  # fmt: skip
def test_texts(text: str, expected: str) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ foo }}", 'function "foo" not defined'),
        ('{{ env "HOME" }}', 'function "env" not defined'),
        ("{{ .name", "unclosed action"),
        ("{{ if true }}x", "unexpected EOF"),
        ("a\n{{ end }}", "_:2: unexpected {{end}}"),
        ("{{ $y }}", 'undefined variable "$y"'),
        ('{{ "abc }}', "unterminated quoted string"),
        ("{{ break }}", "{{break}} outside {{range}}"),
        ("{{ .name.x }}", "can't evaluate field x in type string"),
        ("{{ .null.x }}", "nil pointer evaluating interface {}.x"),
        ("{{ index .missing 0 }}", "index of untyped nil"),
        ("{{ index .names 9 }}", "index out of range: 9"),
        ("{{ upper .missing }}", "invalid value; expected string"),
        ("{{ upper .replicas }}", "wrong type for value; expected string; got json.Number"),
        ('{{ eq 1 "a" }}', "incompatible types for comparison"),
        ("{{ upper }}", "wrong number of args for upper: want 1 got 0"),
        ("{{ div 1 0 }}", "integer divide by zero"),
        ('{{ fail "boom" }}', "boom"),
        ('{{ template "none" }}', 'template "none" not defined'),
        ('{{ define "r" }}{{ template "r" }}{{ end }}{{ template "r" }}', "exceeded maximum template depth"),
        ('{{ repeat 100000000 "abc" }}', "too long"),
        ("{{ range 100000 }}{{ range 100000 }}{{ end }}{{ end }}", "more than 1000000 steps"),
        ("{{ if true }}" * 300, "nested too deep"),
        ("{{ " + "(" * 300 + " }}", "nested too deep"),
    ],
)
def test_problems_are_one_line(text: str, problem: str) -> None:
    with pytest.raises(TemplateError) as error:
        written(text)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)
