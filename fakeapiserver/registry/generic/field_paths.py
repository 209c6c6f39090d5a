"""Removes fields by their paths: those of features that are off, and those that one API version doesn't know.

A path is a tuple of field names. Some steps have marks:

    "*"     every item of a list or map
    "x?"    x, which is removed as well if it is left empty
    "x!v"   x, unless its value is v
    "x=v"   x, which becomes v instead
    "*~x"   every item of a list that has an x

("spec", "containers", "*", "resizePolicy") is the resizePolicy of each container. Objects are changed in place.

Upstream has a function for each feature, named dropDisabled…, in the strategies and in pkg/api/pod/util.go.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import FieldPath, Object

# The names in some paths, without marks and nested: {"spec": {"containers": {"*": {"resizePolicy": {}}}}}.
FieldTree = dict[str, "FieldTree"]
_ITEMS_WITH: Final = "*~"
_MARKS: Final = re.compile("[?!=]")


def drop_disabled_fields(obj: Object, old: Object | None, disabled: Sequence[Sequence[FieldPath]]) -> None:
    """Removes the fields of features that are off: `disabled` has the paths of each. A feature that `old` uses is left alone."""
    for paths in disabled:
        if any(True for path in paths for _ in _values(obj, path)) and not _in_use(old, paths):
            drop_fields(obj, paths)


def drop_fields(obj: Object, paths: Sequence[FieldPath]) -> None:
    """Removes the fields that the paths name."""
    for path in paths:
        _drop(obj, path)


def tree_of(disabled: Sequence[Sequence[FieldPath]]) -> FieldTree:
    """The tree of the names in all paths, for `touches`."""
    tree: FieldTree = {}
    for path in sorted((path for paths in disabled for path in paths), key=len):
        node = tree
        for name in (name for step in path for name in _names(step)):
            if node.get(name) == {}:
                break  # a shorter path ends here and covers this one
            node = node.setdefault(name, {})
    return tree


def _names(step: str) -> tuple[str, ...]:
    if step.startswith(_ITEMS_WITH):
        return "*", step[len(_ITEMS_WITH) :]
    return (_MARKS.split(step, maxsplit=1)[0],)


def touches(value: object, tree: FieldTree) -> bool:
    """Reports whether an object may have one of the tree's fields: a cheap test that spares most objects the walk along each path."""
    if not tree:
        return True
    if type(value) is dict:
        for name, below in tree.items():
            if name == "*":
                if any(touches(item, below) for item in value.values()):
                    return True
            elif name in value and touches(value[name], below):
                return True
    elif type(value) is list and "*" in tree:
        for item in value:
            if touches(item, tree["*"]):
                return True
    return False


def _in_use(old: Object | None, paths: Sequence[FieldPath]) -> bool:
    return old is not None and any(value not in ([], {}) for path in paths for value in _values(old, path))


def _values(value: object, path: FieldPath) -> Iterator[object]:
    """The values that `_drop` would remove."""
    head, rest = path[0], path[1:]
    if head == "*":
        for item in _items(value):
            yield from _values(item, rest)
        return
    if head.startswith(_ITEMS_WITH):
        yield from (item for item in _items(value) if head[2:] in item)
        return
    member = _named(value, head)
    if member is not None:
        if rest:
            yield from _values(member, rest)
        else:
            yield member


def _drop(value: object, path: FieldPath) -> None:
    head, rest = path[0], path[1:]
    if head == "*":
        for item in _items(value):
            _drop(item, rest)
        return
    if head.startswith(_ITEMS_WITH):
        if isinstance(value, list):
            value[:] = [item for item in value if head[2:] not in item]
        return
    member = _named(value, head)
    if member is None:
        return
    had = bool(member)
    if rest:
        _drop(member, rest)
    if not rest or (head[-1] == "?" and had and not member):
        name, instead, becomes = head.partition("=")
        if instead:
            value[name] = becomes  # type: ignore[index]
        else:
            del value[_MARKS.split(head, maxsplit=1)[0]]  # type: ignore[attr-defined]


def _items(value: object) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _named(value: object, step: str) -> object:
    """The value of a step's field; None if there is nothing to remove."""
    if not isinstance(value, dict):
        return None
    if step in value:
        return value[step]
    name, *kept = _MARKS.split(step, maxsplit=1)
    member = value.get(name)
    return None if [member] == kept else member
