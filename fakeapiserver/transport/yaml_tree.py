"""The nodes of a YAML text with their places in it, for edits that leave the rest of the text byte for byte.

PyYAML's own nodes hide aliases and end behind the comments that follow them, so the tree is built from its events.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

from msgspec import Struct, field

_DEPTH: Final = 100


class Node(Struct):
    """A node from `start` to `end`, both indices of the text. A block collection ends where its last scalar does.

    `inner` is where its content begins: behind the bracket of a flow collection. `value` is a scalar's
    value or an alias's name. `properties` are its anchor and its tag. `is_plain`: the scalar has no quotes. The children of a mapping
    are its keys and values in turn."""

    kind: Literal["scalar", "sequence", "mapping", "alias"]
    start: int
    end: int
    inner: int
    value: str = ""
    properties: tuple[str | None, str | None] = (None, None)
    is_plain: bool = False
    is_flow: bool = False
    children: list["Node"] = field(default_factory=list)

    def fields(self) -> Iterator[tuple["Node", "Node"]]:
        """The keys and values of a mapping."""
        return zip(self.children[::2], self.children[1::2], strict=True)

    def get(self, key: str) -> "Node | None":
        """The value of a mapping's key, or None if the node isn't a mapping or lacks the key."""
        if self.kind != "mapping":
            return None
        return next((value for name, value in self.fields() if name.kind == "scalar" and name.value == key), None)

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and self.is_plain and self.value.lower() in ("", "~", "null")

    def shape(self) -> tuple[object, ...]:
        """Returns the node's meaning without its position and style: equal for equal nodes."""
        return self.kind, self.value, self.properties, self.is_plain, [child.shape() for child in self.children]


class Tree(Struct):
    """`root` is None for a text without content. `dashes` are the indices of the hyphens before the items of block sequences."""

    root: Node | None
    dashes: list[int]


def parse(text: str) -> Tree:
    """Raises ValueError for a text that isn't YAML or that holds several documents."""
    import yaml  # takes longer to import than most files take to be written

    # libyaml's parser where PyYAML has it: a long kubeconfig takes it a hundredth of the time.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        dashes = list(_dashes(yaml.scan(text, loader)))
        return Tree(_root(yaml.parse(text, loader)), dashes)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise ValueError(f"{line}{error.problem}") from None
    except yaml.YAMLError:
        raise ValueError("it has characters that YAML doesn't allow") from None


def _dashes(tokens: Iterable[Any]) -> Iterator[int]:
    """Raises ValueError for deep nesting, which takes the parsers a time that is quadratic in the depth."""
    import yaml

    opening = (
        yaml.FlowSequenceStartToken,
        yaml.FlowMappingStartToken,
        yaml.BlockSequenceStartToken,
        yaml.BlockMappingStartToken,
    )
    depth = 0
    for token in tokens:
        if isinstance(token, yaml.BlockEntryToken):
            yield token.start_mark.index
        elif isinstance(token, opening):
            depth += 1
            if depth > _DEPTH:
                raise ValueError(f"it is nested more than {_DEPTH} levels deep")
        elif isinstance(token, (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)):
            depth -= 1


def _root(events: Iterable[Any]) -> Node | None:
    import yaml

    documents = 0
    anchors: set[str] = set()
    root = Node("sequence", 0, 0, 0)
    stack = [root]
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise ValueError("it holds several documents")
        elif isinstance(event, yaml.CollectionEndEvent):
            done = stack.pop()
            end = 0 if event.end_mark is None else event.end_mark.index  # PyYAML's own events have their marks
            done.end = end if done.is_flow else done.children[-1].end if done.children else done.end
        elif isinstance(event, yaml.NodeEvent):
            node = _node(event)
            if node.kind == "alias" and node.value not in anchors:
                raise ValueError(f"it has no anchor {node.value}")
            anchors.add(event.anchor or "")
            stack[-1].children.append(node)
            if isinstance(event, yaml.CollectionStartEvent):
                stack.append(node)
    return root.children[0] if root.children else None


def _node(event: Any) -> Node:
    import yaml

    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.AliasEvent):
        return Node("alias", start, end, start, event.anchor or "")
    properties = (event.anchor, event.tag)
    if isinstance(event, yaml.ScalarEvent):
        return Node("scalar", start, end, start, event.value, properties, not event.style or event.style == "plain")
    kind: Literal["sequence", "mapping"] = "sequence" if isinstance(event, yaml.SequenceStartEvent) else "mapping"
    return Node(kind, start, end, end, properties=properties, is_flow=bool(event.flow_style))
