"""Adds the entries of a cluster to the text of a kubeconfig and takes them out again; the rest stays byte for byte.

Our entries are put first into each list, on a line of their own in a block list, since nothing that precedes an item depends on it. Each
result is parsed and compared with the intended configuration before it is returned. The context carries an extension, as minikube's does:
the texts of the contexts that were current before it, so that the entries of a killed process can be taken out, too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from fakeapiserver.transport import yaml_tree
from fakeapiserver.transport.yaml_tree import Node, Tree

EMPTY: Final = (
    '{\n  "apiVersion": "v1",\n  "kind": "Config",\n  "clusters": [],\n  "contexts": [],\n  "current-context": "",\n'
    '  "preferences": {},\n  "users": []\n}\n'
)
LISTS: Final = ("clusters", "contexts", "users")
_CURRENT: Final = "current-context"
_EXTENSION: Final = "fakeapiserver"
_BLANK: Final = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*[ ]*")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
_COMMA: Final = re.compile(r"[ \t\r\n]*, ?")
_CANNOT_ADD: Final = "is written in a way that no entries can be added to without changing others"


class Entries(Struct):
    """The cluster, context and user of one name. `replaced` are the texts of the entries that they took the place of, by list, and
    `previous` those of the contexts that were current before, the last one first."""

    name: str
    items: Mapping[str, Mapping[str, Any]]
    replaced: dict[str, str] = field(default_factory=dict)
    previous: Sequence[str] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Entries":
        """Returns the entries of a kubeconfig that has one of each."""
        return cls(config[_CURRENT], {name: config[name][0] for name in LISTS})

    def text(self, plural: str) -> str:
        item = dict(self.items[plural])
        if plural == "contexts":
            extension = {"name": _EXTENSION, "extension": {"previous-contexts": list(self.previous)}}
            item["context"] = {**item["context"], "extensions": [extension]}
        return _quoted(item)


def added(text: str, entries: Entries) -> str:
    """The text with the entries, whose context is the current one. Sets `entries.replaced` and `entries.previous`.
    Raises ValueError, with a clause that fits behind the file's name, for what isn't a kubeconfig."""
    if text == EMPTY:  # nothing has to be parsed
        entries.replaced, entries.previous = {}, [_quoted("")]
        for plural in LISTS:
            text = text.replace(f'"{plural}": []', f'"{plural}": [{entries.text(plural)}]')
        return text.replace(f'"{_CURRENT}": ""', f'"{_CURRENT}": {_quoted(entries.name)}')
    before = _kubeconfig(text)
    if before.root is None:
        return added(text + (_newline(text) if text and text[-1] not in "\r\n" else "") + EMPTY, entries)
    for plural in LISTS:
        node = before.root.get(plural)
        if node is not None and (node.kind == "alias" or node.properties[0] is not None):  # it may be elsewhere, too
            raise ValueError(_CANNOT_ADD)
    entries.previous = _previous(text, before.root)
    entries.replaced = {}
    for plural in LISTS:
        item = _item(before.root, plural, entries.name)
        if item is not None:
            entries.replaced[plural] = text[item.start : item.end]
    result = text
    try:
        for plural in LISTS:
            result = _with_item(result, plural, entries)
        result = _with_current(result, _quoted(entries.name))
    except ValueError:  # e.g. an anchor went with what was replaced
        raise ValueError(_CANNOT_ADD) from None
    if _meaning(result) != _expected(before.root, entries):
        raise ValueError(_CANNOT_ADD)
    return result


def removed(text: str, entries: Entries) -> str:
    """Returns the text without the entries, with the entries that they replaced, and with the former current context if theirs is current.

    Returns the same text if the entries of that name have changed meanwhile. Raises ValueError.
    """
    tree = _kubeconfig(text)
    cluster = _item(tree.root, "clusters", entries.name)
    if cluster is None or not _is_same(cluster, entries.items["clusters"]):
        return text
    return _without(text, entries.name, entries.replaced, entries.previous)


def without_leftovers(text: str, name: str) -> str:
    """The text without the entries of that name if an earlier process added them. Raises ValueError."""
    if f'"{_EXTENSION}"' not in text and f"name: {_EXTENSION}" not in text:
        return text
    previous = _recorded(_item(_kubeconfig(text).root, "contexts", name))
    return text if previous is None else _without(text, name, {}, previous)


# --------------------------------------------------------------------------------------------- what a text means


def _kubeconfig(text: str) -> Tree:
    """The tree has no root if the text has no content. Raises ValueError for what isn't a kubeconfig."""
    try:
        tree = yaml_tree.parse(text)
    except ValueError as error:
        raise ValueError(f"is not a kubeconfig: {error}") from None
    root = tree.root
    if root is None or root.start == root.end:
        return Tree(None, [])
    if root.kind != "mapping":
        raise ValueError(f"is not a kubeconfig: it holds a {root.kind}, not a mapping")
    for key, expected in (("kind", "Config"), ("apiVersion", "v1")):
        node = root.get(key)
        if node is not None and not node.is_null and (node.kind != "scalar" or node.value != expected):
            raise ValueError(f"is not a kubeconfig: its {key} is {node.value or node.kind}, not {expected}")
    keys = [key.value for key, _ in root.fields()]
    if root.get("kind") is None and not {*LISTS, _CURRENT} & {*keys}:
        raise ValueError("is not a kubeconfig: it has neither kind: Config nor clusters, contexts or users")
    repeated = [key for key in (*LISTS, _CURRENT) if keys.count(key) > 1]
    if repeated:
        raise ValueError(f"is not a kubeconfig: it has {repeated[0]} more than once")
    for plural in LISTS:
        node = root.get(plural)
        if node is not None and node.kind not in ("sequence", "alias") and not node.is_null:
            raise ValueError(f"is not a kubeconfig: its {plural} are a {node.kind}, not a list")
    current = root.get(_CURRENT)
    if current is not None and current.kind in ("sequence", "mapping"):
        raise ValueError(f"is not a kubeconfig: its {_CURRENT} is a {current.kind}")
    return tree


def _item(root: Node | None, plural: str, name: str) -> Node | None:
    """The entry of that name."""
    node = root.get(plural) if root is not None else None
    for item in node.children if node is not None else ():
        label = item.get("name")
        if label is not None and label.value == name:
            return item
    return None


def _is_same(item: Node, cluster: Mapping[str, Any]) -> bool:
    """Reports whether it leads to this very server."""
    return all(
        (cluster_node := item.get("cluster")) is not None
        and (node := cluster_node.get(key)) is not None
        and node.value == value
        for key, value in cluster["cluster"].items()
    )


def _recorded(context: Node | None) -> list[str] | None:
    """The texts in our extension of a context, or None for a context of others."""
    extensions = details.get("extensions") if context is not None and (details := context.get("context")) else None
    for extension in extensions.children if extensions is not None else ():
        name, content = extension.get("name"), extension.get("extension")
        texts = content.get("previous-contexts") if content is not None else None
        if name is not None and name.value == _EXTENSION and texts is not None:
            return [text.value for text in texts.children]
    return None


def _previous(text: str, root: Node | None) -> list[str]:
    """The text of the current context, and if it is one of ours those of the contexts before it."""
    current = root.get(_CURRENT) if root is not None else None
    if current is None or current.start == current.end:
        return [_quoted("")]
    return [text[current.start : current.end], *(_recorded(_item(root, "contexts", current.value)) or ())]


Meaning = tuple[list[object], dict[str, list[object]], str | None]


def _meaning(text: str) -> Meaning | None:
    """Returns the data besides our keys, in order; each list; the current context.

    None for a text that isn't a kubeconfig.
    """
    try:
        return _meaning_of(_kubeconfig(text).root)
    except ValueError:
        return None


def _meaning_of(root: Node | None) -> Meaning:
    if root is None:
        return [], {plural: [] for plural in LISTS}, None
    lists = {plural: root.get(plural) for plural in LISTS}
    current = root.get(_CURRENT)
    return (
        [(key.shape(), value.shape()) for key, value in root.fields() if key.value not in (*LISTS, _CURRENT)],
        {plural: [item.shape() for item in node.children] if node else [] for plural, node in lists.items()},
        current.value if current is not None else None,
    )


def _expected(root: Node | None, entries: Entries) -> Meaning:
    others, lists, _ = _meaning_of(root)
    for plural in LISTS:
        entry = yaml_tree.parse(entries.text(plural)).root
        assert entry is not None
        replaced = _item(root, plural, entries.name)
        if replaced is None:
            lists[plural].insert(0, entry.shape())
        else:
            lists[plural] = [entry.shape() if item == replaced.shape() else item for item in lists[plural]]
    return others, lists, entries.name


# ------------------------------------------------------------------------------------------------------- edits


def _with_item(text: str, plural: str, entries: Entries) -> str:
    tree = yaml_tree.parse(text)
    assert tree.root is not None
    entry = entries.text(plural)
    if (item := _item(tree.root, plural, entries.name)) is not None:
        return _replaced(text, item, entry)
    node = tree.root.get(plural)
    if node is None:
        return _with_key(text, tree.root, plural, f"[{entry}]")
    if node.kind != "sequence":
        return _replaced(text, node, f"[{entry}]")
    if node.is_flow:
        return _inserted(text, node.inner, f"{entry}, " if node.children else entry)
    key = next(key for key, value in tree.root.fields() if value is node)
    dash = next(dash for dash in tree.dashes if dash >= node.start)
    margin = " " * (dash - _line_start(text, dash))
    line = _LINE.match(text, key.end)
    if line is not None and node.properties == (None, None) and _BLANK.fullmatch(text, line.end(), dash):
        return _inserted(text, line.end(), f"{margin}- {entry}{_newline(text)}")
    return _inserted(text, dash, f"- {entry}{_newline(text)}{margin}")


def _with_current(text: str, value: str) -> str:
    root = yaml_tree.parse(text).root
    assert root is not None
    node = root.get(_CURRENT)
    return _with_key(text, root, _CURRENT, value) if node is None else _replaced(text, node, value)


def _with_key(text: str, root: Node, key: str, value: str) -> str:
    if root.is_flow:
        return _inserted(text, root.inner, f"{_quoted(key)}: {value}" + (", " if root.children else ""))
    first = root.children[0].start
    start = _line_start(text, first)
    margin = text[start:first].partition("?")[0]
    return _inserted(text, start, f"{margin}{key}: {value}{_newline(text)}")


def _without(text: str, name: str, replaced: Mapping[str, str], previous: Sequence[str]) -> str:
    others, lists, current = _meaning_of(_kubeconfig(text).root)
    result = text
    for plural in LISTS:
        tree = _kubeconfig(result)
        if (item := _item(tree.root, plural, name)) is not None:
            lists[plural].remove(item.shape())
            result = (
                _replaced(result, item, replaced[plural]) if plural in replaced else _cut(result, tree, plural, item)
            )
    if current == name:
        root = _kubeconfig(result).root
        candidates = previous or [_quoted("")]
        result = _with_current(
            result, next((meaning for meaning in candidates if _names_context(root, meaning)), candidates[-1])
        )
    meaning = _meaning(result)
    lost = (
        meaning is None
        or meaning[0] != others
        or any(item not in meaning[1][key] for key in LISTS for item in lists[key])
    )
    if lost:
        raise ValueError(f"has changed: the entries called {_quoted(name)} can't be taken out of it")
    comments = result.removesuffix(EMPTY)
    return comments if comments and _BLANK.fullmatch(comments) else result


def _names_context(root: Node | None, text: str) -> bool:
    try:
        node = yaml_tree.parse(text).root
    except ValueError:  # an alias
        return False
    return node is not None and _item(root, "contexts", node.value) is not None


def _cut(text: str, tree: Tree, plural: str, item: Node) -> str:
    """Without an item and what separates it from its neighbours."""
    assert tree.root is not None
    node = tree.root.get(plural)
    assert node is not None
    index = next(index for index, child in enumerate(node.children) if child is item)
    after = node.children[index + 1 :]
    if node.is_flow:
        if after and (comma := _COMMA.match(text, item.end)):
            return text[: item.start] + text[comma.end() :]
        start = text.rindex(",", node.start, item.start) if index else item.start
        return text[:start] + text[item.end :]
    dash = max(dash for dash in tree.dashes if dash <= item.start)
    start = _line_start(text, dash)
    line = _LINE.match(text, item.end)
    assert line is not None
    end = item.end if text[item.end - 1] in "\r\n" else line.end()
    if text[start:dash].strip(" "):  # the sequence begins on the line of its key
        start, end = dash, next((other for other in tree.dashes if other > item.end), end) if after else end
    return text[:start] + text[end:]


def _replaced(text: str, node: Node, value: str) -> str:
    """With another text in the place of a node's."""
    old = text[node.start : node.end]
    if not old:
        value = f" {value}"
    if old.endswith(("\r", "\n")) and not value.endswith(("\r", "\n")):
        value += _newline(text)
    return text[: node.start] + value + text[node.end :]


def _inserted(text: str, index: int, new: str) -> str:
    return text[:index] + new + text[index:]


def _line_start(text: str, index: int) -> int:
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def _newline(text: str) -> str:
    return next((newline for newline in ("\r\n", "\n", "\r") if newline in text), "\n")


def _quoted(value: object) -> str:
    """Returns the value as JSON, which is YAML too; escaped surrogates would not be."""
    return json.dumps(value, ensure_ascii=False)
