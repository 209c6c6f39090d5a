"""The page's pure parts: YAML, differences, managers of fields, filters and the layout of graphs."""

import json
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest
import yaml

Opener = Callable[..., Any]


def run(page: Any, module: str, code: str, *values: object) -> Any:
    """Runs `code` with `m` (the module) and `values` in the page."""
    script = f"async (values) => {{ const m = await import('/{module}.js'); {code} }}"
    return page.evaluate(script, list(values))


@pytest.fixture(scope="module")
def page(browser: Any, static_server: Any) -> Any:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{static_server.server_address[1]}/dom.js")
    yield page
    context.close()


@pytest.mark.parametrize(
    "value",
    [
        "",
        "text",
        "a: b",
        "#a",
        "- a",
        "-a",
        "*a",
        "&a",
        "!a",
        "1",
        "1.5",
        "true",
        "null",
        "~",
        "0644",
        "0x1f",
        "2026-01-01",
        "a #b",
        " a",
        "a ",
        "a\nb",
        "a\nb\n",
        "\na",
        "a\tb",
        "'a'",
        '"a"',
        "`a`",
        "@a",
        "%a",
        "<b>",
        "=",
        "a:",
        "ü",
        "[a]",
        "{a}",
        "yes",
        "on",
        "y",
        "1e3",
        ".5",
        "?a",
        "|",
        ">",
    ],
)
def test_yaml_reads_back_as_the_same_value(page: Any, value: str) -> None:
    held = {
        "kind": "K",
        "spec": {"a": value, "list": [value, [value, 1], {"b": value, "c": None}], "empty": {}, "none": []},
        value or "key": 1,
    }
    text = run(page, "yamllines", "return m.toYaml(values[0]);", held)
    assert yaml.safe_load(text) == held


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({"a": 1}, {"a": 2}, ["change a"]),
        ({}, {"a": {"b": 1}}, ["add a"]),
        (
            {"a": [{"name": "x", "v": 1}]},
            {"a": [{"name": "y"}, {"name": "x", "v": 2}]},
            ["change a[name=x].v", "add a[name=y]"],
        ),
        ({"a": ["x"]}, {"a": ["x", "y"]}, ["change a"]),
        (
            {"metadata": {"resourceVersion": "1", "labels": {"a/b": "c"}}},
            {"metadata": {"resourceVersion": "2"}},
            ["remove metadata.labels"],
        ),
        ({"a": [{"name": "x"}, {"name": "y"}]}, {"a": [{"name": "y"}, {"name": "x"}]}, ["change a"]),
        ({"a": 1}, {"a": 1}, []),
    ],
)
def test_changed_fields(page: Any, before: Any, after: Any, changes: list[str]) -> None:
    code = "return m.objectChanges(...values).map((change) => `${change.op} ${change.path}`);"
    assert run(page, "diff", code, before, after) == changes


@pytest.mark.parametrize(
    ("before", "after"),
    [("abcabba", "cbabac"), ("", "abc"), ("abc", ""), ("abc", "abc"), ("axbxc", "abc"), ("aaaa", "aa")],
)
def test_line_differences_make_one_text_of_the_other(page: Any, before: str, after: str) -> None:
    lines = run(page, "diff", "return m.lineDiff([...values[0]], [...values[1]]);", before, after)
    assert "".join(line["text"] for line in lines if line["op"] != "+") == before
    assert "".join(line["text"] for line in lines if line["op"] != "-") == after
    kept = sum(line["op"] == " " for line in lines)
    assert kept == longest_common(before, after)


def longest_common(a: str, b: str) -> int:
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + longest_common(a[1:], b[1:])
    return max(longest_common(a[1:], b), longest_common(a, b[1:]))


def test_the_managers_of_fields(page: Any) -> None:
    fields = {"f:spec": {"f:replicas": {}, "f:list": {'k:{"name":"x"}': {".": {}, "f:v": {}}}, "f:atomic": {}}}
    other = {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:finalizers": {'v:"f1"': {}}}}
    held = {
        "metadata": {
            "finalizers": ["f1", "f2"],
            "managedFields": [{"manager": "a", "fieldsV1": fields}, {"manager": "b", "fieldsV1": other}],
        },
        "spec": {"replicas": 1, "list": [{"name": "x", "v": 1}, {"name": "y"}], "atomic": {"deep": {"er": 1}}},
    }
    owners = dict(
        run(page, "yamllines", "return m.yamlLines(values[0]).map((line) => [line.path.join('.'), line.owners]);", held)
    )
    assert owners["spec.replicas"] == [0, 1]
    assert owners["spec.list.0.v"] == [0]
    assert owners["spec.list.1.name"] == []
    assert owners["spec.atomic.deep.er"] == [0]
    assert owners["metadata.finalizers.0"] == [1]
    assert owners["metadata.finalizers.1"] == []
    assert not any("managedFields" in path for path in owners)


POD = {
    "metadata": {"name": "web-1"},
    "spec": {"containers": [{"image": "a"}, {"image": "b"}]},
    "status": {"phase": "Running"},
}
HEAD = {"name": "web-1", "ns": "shop", "labels": {"app": "web", "tier": "front"}, "uid": "1"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("web", True),
        ("WEB-1", True),
        ("shop", True),
        ("running", True),
        ("db", False),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("app=web,tier=back", False),
        ("app=web tier!=back", True),
        ("tier in (front, back)", True),
        ("tier notin (front)", False),
        ("!canary", True),
        ("!app", False),
        ("!toString", True),
        ("-l app=web", True),
        ("metadata.name=web-1", True),
        ("metadata.namespace!=shop", False),
        ("status.phase=Running", True),
        (".status.phase=Pending", False),
        ("spec.containers.image=b", True),
        ("spec.containers[0].image=b", False),
        ("app=web status.phase=Running web", True),
        ("'web-1'", True),
    ],
)
def test_filters(page: Any, text: str, matches: bool) -> None:
    code = "return m.matchesFilter(m.parseFilter(values[0]), values[1], ['web-1', 'Running'], values[2]);"
    assert run(page, "selectors", code, text, HEAD, POD) is matches


def test_a_layout_leaves_room_between_nodes_and_goes_from_left_to_right(page: Any) -> None:
    names = [f"n{number}" for number in range(60)]
    edges = [{"from": f"n{number // 3}", "to": f"n{number}"} for number in range(1, 40)] + [
        {"from": "n50", "to": "n51"},
        {"from": "n51", "to": "n50"},
    ]
    nodes = run(page, "graphlayout", "return m.layout(values[0].map((key) => ({ key })), values[1]);", names, edges)
    places = {node["key"]: (node["x"], node["y"]) for node in nodes}
    boxes = sorted(places.values())
    for index, (x, y) in enumerate(boxes):
        for other_x, other_y in boxes[index + 1 :]:
            assert abs(x - other_x) >= 199 or abs(y - other_y) >= 40, json.dumps(places)
    assert all(places[edge["from"]][0] < places[edge["to"]][0] for edge in edges[:39])


@pytest.mark.parametrize("seed", range(5))
def test_no_edge_of_a_graph_goes_behind_a_node(page: Any, seed: int) -> None:
    dice = Random(seed)
    names = [f"n{number}" for number in range(dice.choice((10, 40, 120)))]
    edges = [
        {"from": f"n{dice.randrange(number)}", "to": f"n{number}", "kind": dice.choice(("owns", "uses"))}
        for number in range(1, len(names))
        for _ in range(dice.randint(1, 3))
    ]
    code = "const nodes = values[0].map((key) => ({ key })); m.layout(nodes, values[1]); return [nodes, values[1]];"
    nodes, routed = run(page, "graphlayout", code, names, edges)
    places = {node["key"]: node for node in nodes}
    assert any(edge["via"] for edge in routed), "some edges pass a column"
    for edge in routed:
        columns = [places[edge["from"]], *edge["via"], places[edge["to"]]]
        # Each step leads to the next column: what lies between two columns is free of nodes.
        assert {right["x"] - left["x"] for left, right in pairwise(columns)} == {290}
        for passage in edge["via"]:
            beside = [node for node in nodes if node["x"] == passage["x"]]
            assert not any(node["y"] < passage["y"] < node["y"] + 40 for node in beside), edge


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("the test", "The test patched it."),
        ("the page", "The page patched it."),
        ("the tester", "the tester patched it."),
        ("kubectl", "kubectl patched it."),
    ],
)
def test_a_sentence_begins_with_a_capital_letter(page: Any, text: str, sentence: str) -> None:
    assert run(page, "cause", "return m.sentence`${values[0]} patched it.`;", text) == [sentence]
