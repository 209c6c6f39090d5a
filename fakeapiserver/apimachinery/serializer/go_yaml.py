"""A YAML document by the rules of Go's YAML library, from libyaml's events: its scalars, merges, limits and errors.

Upstream: go.yaml.in/yaml/v2/decode.go, sigs.k8s.io/yaml/yaml.go (the conversion to JSON).
"""

import math
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

import yaml

from fakeapiserver.apimachinery.allowance import spend
from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.serializer.go_json import UnsupportedMapKey, YAMLError
from fakeapiserver.apimachinery.serializer.go_yaml_scalars import MERGE, go_g, resolve

try:
    from yaml._yaml import CParser as _Parser
except ImportError:  # no wheel with libyaml: the same events, slower and in words of its own
    from yaml import SafeLoader as _Parser  # type: ignore[assignment]

_MAX_DEPTH: Final = 10_000
# Levels that one stack holds: a level is up to five calls.
_LEVELS: Final = 100
_TOO_DEEP: Final = f"yaml: exceeded max depth of {_MAX_DEPTH}"
_INT64_END: Final = 1 << 63
_MAX_FLOAT32: Final = 3.4028235677973366e38
# Up to the first number of nodes 99 of 100 may come from aliases, from the second on 10 of 100.
_ALIAS_RANGE: Final = (400_000, 4_000_000)
_WANT_MAP: Final = "yaml: map merge requires map or sequence of maps as the value"
_SCALAR, _MAPPING, _SEQUENCE, _ALIAS = range(4)
_BAD_TAG: Final = "did not find expected whitespace or line break"
# Bytes of the largest text that is read by the older grammar, which a parser in Python takes a second for.
_LARGEST_OLDER: Final = 64 * 1024
# Characters of a key that no `?` announces.
_LONGEST_KEY: Final = 1024
# Its cost of a byte, in the unit of `spend`.
_OLDER_COST: Final = 200
# What libyaml refuses and its older versions may not.
_NEWER_PROBLEMS: Final = (_BAD_TAG, "found unexpected ':'", "exceeded maximum nesting depth")
_FLOW_INDICATORS: Final = frozenset(",[]{}")
# The words of the parser in Python, and libyaml's.
_GO_WORDS: Final = (
    (re.compile("exceeded maximum nesting depth"), _TOO_DEEP.removeprefix("yaml: ")),
    (re.compile(r"found unknown escape character .*"), "found unknown escape character"),
    (re.compile(r"expected (',' or '.'), but got .*"), r"did not find expected \1"),
    (re.compile(r"expected the node content, but found .*"), "did not find expected node content"),
    (re.compile(r"expected ' ', but found .*"), _BAD_TAG),
)


class _Node:
    __slots__ = ("children", "implicit", "kind", "line", "tag", "target", "text")

    def __init__(self, kind: int, line: int) -> None:
        self.kind = kind
        self.line = line
        self.tag = ""
        self.text = ""
        self.implicit = False
        self.target: _Node | None = None
        self.children: list[_Node] = []


class _OlderGrammar(Exception):
    """The text has something that Go's library, a port of an older libyaml, reads in another way."""


class _OlderParser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):
    """Reads the older grammar: `\\/` is no escape, `?` ends a plain scalar in a flow, `:` in front of a bracket or a comma doesn't, and a
    tag goes on behind a comma."""

    ESCAPE_REPLACEMENTS: ClassVar = {  # type: ignore[misc]
        key: text for key, text in yaml.scanner.Scanner.ESCAPE_REPLACEMENTS.items() if key != "/"
    }

    def __init__(self, data: bytes) -> None:
        self._is_in_plain = False
        self._seen = (0, "")
        yaml.reader.Reader.__init__(self, data)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)

    def stale_possible_simple_keys(self) -> None:
        """Does what PyYAML does, which looks at the keys of all levels at each token. They are in the order of the text."""
        while self.possible_simple_keys:
            level, key = next(iter(self.possible_simple_keys.items()))
            if key.line == self.line and self.index - key.index <= _LONGEST_KEY:
                return
            if key.required:
                super().stale_possible_simple_keys()  # raises the error
            del self.possible_simple_keys[level]

    def next_possible_simple_key(self) -> int | None:
        return next((key.token_number for key in self.possible_simple_keys.values()), None)

    def scan_plain(self) -> Any:
        self._is_in_plain = True
        try:
            return super().scan_plain()
        finally:
            self._is_in_plain = False

    def peek(self, index: int = 0) -> str:
        character: str = super().peek(index)
        is_behind_colon = self._seen == (index - 1, ":")
        self._seen = (index, character)
        return "_" if self._is_in_plain and is_behind_colon and character in _FLOW_INDICATORS else character


def compose(data: bytes) -> _Node | None:
    """Returns the tree of the first document, or None. Raises YAMLError."""
    try:
        try:
            return _first_document(_Parser(data or b"\n"), data)
        except _OlderGrammar:
            return _older_document(data)
        except yaml.scanner.ScannerError as error:
            if error.problem not in _NEWER_PROBLEMS or len(data) > _LARGEST_OLDER:
                raise
            return _older_document(data)
    except yaml.YAMLError as error:
        raise YAMLError(f"yaml: {_words(error)}") from None


def _older_document(data: bytes) -> _Node | None:
    spend(_OLDER_COST * len(data))
    return _first_document(_OlderParser(data), b"")


def _first_document(parser: Any, data: bytes) -> _Node | None:
    """Raises _OlderGrammar if `data` is short and may have something of the older grammar."""
    events = _events(parser)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            return _Composer(events, data if len(data) <= _LARGEST_OLDER else b"").compose()
    return None


def _events(parser: Any) -> Iterator[Any]:
    while event := parser.get_event():
        yield event


def _words(error: yaml.YAMLError) -> str:
    """Returns the error as Go words it: lines are counted from zero, except where the scanner stopped."""
    if isinstance(error, yaml.reader.ReaderError):
        return str(error.reason)
    assert isinstance(error, yaml.MarkedYAMLError)
    mark, context = error.problem_mark, error.context_mark
    line = 0
    if mark and mark.line:
        line = mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif context:
        line = context.line
    problem = error.problem or "unknown problem parsing YAML content"
    for pattern, words in _GO_WORDS:
        problem = pattern.sub(words, problem)
    return (f"line {line}: " if line else "") + problem


class _Composer:
    """Events to nodes, on a stack of its own: a document may be deeper than Python's."""

    def __init__(self, events: Iterator[Any], data: bytes) -> None:
        self._events = events
        self._anchors: dict[str, _Node] = {}
        self._may_be_older = bool(data)
        self._has_escaped_slash = b"\\/" in data
        self._flows = 0  # open flow collections

    def compose(self) -> _Node:
        root = _Node(_SEQUENCE, 0)
        open_nodes = [root]
        for event in self._events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                open_nodes[-1].children.append(self._scalar(event))
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                node = self._container(event)
                open_nodes[-1].children.append(node)
                open_nodes.append(node)
                self._flows += self._flows > 0 or bool(event.flow_style)
                if len(open_nodes) > _MAX_DEPTH:
                    line = event.start_mark.line
                    raise YAMLError(_TOO_DEEP.replace(" ", f" line {line + 1}: ", 1) if line else _TOO_DEEP)
            elif kind is yaml.AliasEvent:
                open_nodes[-1].children.append(self._alias(event))
            elif kind is yaml.DocumentEndEvent:
                break
            else:
                open_nodes.pop()
                self._flows -= self._flows > 0
        return root.children[0]

    def _scalar(self, event: Any) -> _Node:
        node = _Node(_SCALAR, event.start_mark.line)
        node.text = event.value
        node.tag = event.tag or ""
        node.implicit = event.implicit[0]
        if event.anchor:
            self._anchors[event.anchor] = node
        if self._may_be_older and (self._flows or self._has_escaped_slash) and self._is_read_otherwise(event):
            raise _OlderGrammar
        return node

    def _is_read_otherwise(self, event: Any) -> bool:
        """Reports whether an older libyaml might read a scalar in another way."""
        if event.style == '"':
            return self._has_escaped_slash
        return self._flows > 0 and not event.style and ("?" in event.value or bool(event.tag and not event.value))

    def _container(self, event: Any) -> _Node:
        node = _Node(_MAPPING if type(event) is yaml.MappingStartEvent else _SEQUENCE, event.start_mark.line)
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any) -> _Node:
        node = _Node(_ALIAS, event.start_mark.line)
        node.text = event.anchor
        node.target = self._anchors.get(event.anchor)
        if node.target is None:
            raise YAMLError(f"yaml: unknown anchor '{event.anchor}' referenced")
        return node


# A mapping's values, each with what keeps it out of JSON.
_Entries = dict[str, tuple[Any, YAMLError | None]]


class Constructor:
    """Nodes to JSON values. `duplicates` then holds `line 2: key "a" already set in map` for each repeated key."""

    def __init__(self, *, exactly: bool = False) -> None:
        self.duplicates: list[str] = []
        self._exactly = exactly
        self._unfit: YAMLError | None = (
            None  # The first complaint of the step to JSON, which upstream takes after all others.
        )
        self._count = 1
        self._from_aliases = 0
        self._alias_depth = 0
        self._open_aliases: set[int] = set()
        self._depth = 0

    def construct(self, root: _Node) -> Any:
        """The value; mappings sorted by key, as they come out of Go's maps. Raises YAMLError."""
        value = self._value(root)
        if self._unfit:
            raise self._unfit
        return value

    def _value(self, node: _Node) -> Any:
        self._count_one()
        if node.kind == _SCALAR:
            return self._number(self._scalar(node))
        self._depth += 1
        value = self._within(node) if self._depth % _LEVELS else continued(self._within, node)
        self._depth -= 1
        return value

    def _within(self, node: _Node) -> Any:
        if node.kind == _MAPPING:
            return self._sorted(node)
        if node.kind == _SEQUENCE:
            return [self._value(child) for child in node.children]
        return self._aliased(node, self._value)

    def _count_one(self) -> None:
        self._count += 1
        if self._alias_depth:
            self._from_aliases += 1
            enough = self._from_aliases > 100 and self._count > 1000
            if enough and self._from_aliases / self._count > _allowed_ratio(self._count):
                raise YAMLError("yaml: document contains excessive aliasing")

    def _aliased(self, node: _Node, visit: Callable[[_Node], Any]) -> Any:
        if id(node) in self._open_aliases:
            raise YAMLError(f"yaml: anchor '{node.text}' value contains itself")
        assert node.target
        self._open_aliases.add(id(node))
        self._alias_depth += 1
        value = visit(node.target)
        self._alias_depth -= 1
        self._open_aliases.discard(id(node))
        return value

    def _scalar(self, node: _Node) -> Any:
        if not node.tag and not node.implicit:
            return node.text
        return resolve(node.tag, node.text)[1]

    def _number(self, value: Any) -> Any:
        """Returns a number as it is after JSON: whole floats are integers, integers beyond int64 floats.

        Decoders that know the type get the exact values: `exactly`.
        """
        if type(value) is float:
            if not math.isfinite(value):
                shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
                self._unfit = self._unfit or YAMLError(f"json: unsupported value: {shown}")
            elif value.is_integer() and abs(value) < _INT64_END:
                return int(value)
        elif type(value) is int and value >= _INT64_END and not self._exactly:
            return float(value)
        return value

    def _sorted(self, node: _Node) -> dict[str, Any]:
        entries: _Entries = {}
        self._fill(node, entries)
        self._unfit = self._unfit or next((why for _, why in entries.values() if why), None)
        return {key: entries[key][0] for key in sorted(entries)}

    def _fill(self, node: _Node, entries: _Entries) -> None:
        """Sets a mapping's entries.

        Merged ones count as set where they are: later entries replace them without an error.
        """
        seen: set[Any] = set(entries)
        children = iter(node.children)
        for key_node in children:
            value_node = next(children)
            if key_node.text == "<<" and key_node.kind == _SCALAR and (key_node.implicit or key_node.tag == MERGE):
                self._merge(value_node, entries)
                seen.update(entries)
                continue
            before, self._unfit = self._unfit, None
            key = self._key(key_node)
            value = self._value(value_node)
            name = key if type(key) is str else self._key_text(key, value)
            identity = key if type(key) is str else (type(key), key)
            if identity in seen:
                self.duplicates.append(f"line {value_node.line + 1}: key {_go_value(key)} already set in map")
            seen.add(identity)
            entries[name] = value, self._unfit
            self._unfit = before

    def _key(self, node: _Node) -> Any:
        if node.kind == _SCALAR:
            self._count_one()
            return self._scalar(node)
        key = self._aliased(node, self._key) if node.kind == _ALIAS else self._value(node)
        if isinstance(key, dict | list):
            raise YAMLError(f"yaml: invalid map key: {_go_value(key)}")
        return key

    def _key_text(self, key: Any, value: Any) -> str:
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, float):
            return _short_float(key)
        if isinstance(key, int) and key < _INT64_END:
            return str(key)
        type_name, shown = ("%!s(<nil>)", "<nil>") if key is None else ("uint64", hex(key))
        self._unfit = self._unfit or UnsupportedMapKey(
            f"unsupported map key of type: {type_name}, key: {shown}, value: {_go_value(value, nil='<nil>')}"
        )
        return ""

    def _merge(self, node: _Node, entries: _Entries) -> None:
        if node.kind == _SEQUENCE:
            # From the last to the first: earlier ones win.
            for child in reversed(node.children):
                self._merge_mapping(child, entries)
        else:
            self._merge_mapping(node, entries)

    def _merge_mapping(self, node: _Node, entries: _Entries) -> None:
        target = node.target if node.kind == _ALIAS and node.target else node
        if target.kind != _MAPPING:
            raise YAMLError(_WANT_MAP)
        self._count_one()
        if node.kind == _ALIAS:
            self._aliased(node, lambda inner: self._merge_mapping(inner, entries))
        else:
            self._fill(node, entries)


def _allowed_ratio(count: int) -> float:
    low, high = _ALIAS_RANGE
    if count <= low:
        return 0.99
    return 0.1 if count >= high else 0.99 - 0.89 * (count - low) / (high - low)


def _short_float(value: float) -> str:
    """A float key as Go writes it in 32-bit precision."""
    if math.isnan(value):
        return ".nan"
    if abs(value) > _MAX_FLOAT32:
        return ".inf" if value > 0 else "-.inf"
    single = _to_single(value)
    for digits in range(1, 10):
        text = f"{single:.{digits}g}"
        if _to_single(float(text)) == single:
            break
    return go_g(float(text))


def _to_single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _go_value(value: Any, nil: str = "interface {}(nil)") -> str:
    """Shows a value of the YAML library as Go's %#v does."""
    if value is None:
        return nil
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_go_value(item) for item in value) + "}"
    if isinstance(value, dict):
        items = (f"{go_quote(key)}:{_go_value(item)}" for key, item in value.items())
        return "map[interface {}]interface {}{" + ", ".join(items) + "}"
    if isinstance(value, float):
        return go_g(value)
    return str(value) if value < _INT64_END else hex(value)
