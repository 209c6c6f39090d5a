"""Configuration files of components: what is read, and what is said of everything else (compared with kube-apiserver 1.36.3)."""

import re

import pytest

from fakeapiserver.apimachinery.serializer.component_config import ConfigKind

KIND = ConfigKind(
    "Menu",
    ("food.example.com/v1", "food.example.com/v1beta1"),
    {
        "Menu": {"dishes": "[]Dish", "opens": "Duration", "tables": "int32", "notes": "Raw"},
        "Dish": {"name": "string", "hot": "bool", "kind": "DishKind", "with": "[]string", "side": "Dish"},
        "DishKind": "string",
    },
)
HEAD = "kind: Menu\napiVersion: food.example.com/v1\n"
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
NO_OBJECT = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type "
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def test_what_is_null_is_left_out_and_what_is_false_is_not() -> None:
    text = (
        "dishes: [{name: a, hot: false, with: [null, b], side: null}, null]\nopens: 1h\ntables: 0\nnotes: {a: null}\n"
    )
    found = KIND.decode(f"{HEAD}{text}".encode())
    assert found["dishes"] == [{"name": "a", "hot": False, "with": ["", "b"]}, {}]
    assert (found["opens"], found["tables"], found["notes"]) == ("1h", 0, {"a": None})


def test_json_is_read_too() -> None:
    assert KIND.decode(b' {"kind":"Menu","apiVersion":"food.example.com/v1beta1","tables":3}')["tables"] == 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "Object 'Kind' is missing in '{}'"),
        ("kind: Menu\n", "Object 'apiVersion' is missing in 'kind: Menu\n'"),
        ("kind: Menu\napiVersion: a/b/c", "unexpected GroupVersion string: a/b/c"),
        ("[]", NO_OBJECT),
        ("{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("kind: Card\napiVersion: v1", f'no kind "Card" is registered for version "v1" {SCHEME}'),
        ("kind: Menu\napiVersion: v1", f'no kind "Menu" is registered for version "v1" {SCHEME}'),
        (f"{HEAD}dishes: x", "json: cannot unmarshal string into Go struct field Menu.dishes of type []v1.Dish"),
        (f"{HEAD}dishes: [x]", "json: cannot unmarshal string into Go struct field Menu.dishes of type v1.Dish"),
        (
            f"{HEAD}dishes: [{{kind: 5, name: 6}}]",
            "json: cannot unmarshal number into Go struct field Dish.dishes.kind of type v1.DishKind",
        ),
        (
            f"{HEAD}dishes: [{{side: {{with: [1]}}}}]",
            "json: cannot unmarshal number into Go struct field Dish.dishes.side.with of type string",
        ),
        (f"{HEAD}tables: 1.5", "json: cannot unmarshal number 1.5 into Go struct field Menu.tables of type int32"),
        (f"{HEAD}opens: 5", "json: cannot unmarshal number into Go struct field Menu.opens of type string"),
        (f"{HEAD}opens: soon", 'time: invalid duration "soon"'),
        (
            f"{HEAD}dishes: [{{nome: a, side: {{x: 1}}}}]\nKind: Menu",
            'strict decoding error: unknown field "Kind", unknown field "dishes[0].nome", unknown field "dishes[0].side.x"',
        ),
        (
            f"{HEAD}x: 1\ntables: 1\ntables: 2",
            'strict decoding error: yaml: unmarshal errors:\n  line 5: key "tables" already set in map, unknown field "x"',
        ),
        (
            '{"kind":"Menu","apiVersion":"food.example.com/v1","x":1,"tables":1,"tables":2,"y":1}',
            'strict decoding error: unknown field "x", duplicate field "tables", unknown field "y"',
        ),
    ],
)
def test_errors_have_gos_messages(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        KIND.decode(text.encode())
