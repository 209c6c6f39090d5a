"""Whether an applied object fits its type.

Upstream: sigs.k8s.io/structured-merge-diff/v6/typed (validate.go, helpers.go).
"""

from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.apimachinery.depth import Walk, continued, flattened
from fakeapiserver.apimachinery.managedfields.fieldset import path_text
from fakeapiserver.apimachinery.managedfields.typed import Node, NoPathElement, TypedSchema
from fakeapiserver.apimachinery.patch.go_format import GoValue, go_syntax, go_type, go_value

Problem = tuple[str, str]

# What any type with this scalar takes; others need a closer look.
_FITTING: Final[Mapping[str, frozenset[type]]] = {
    "": frozenset((type(None),)),
    "string": frozenset((type(None), str)),
    "numeric": frozenset((type(None), int, float)),
    "boolean": frozenset((type(None), bool)),
    "untyped": frozenset((type(None), str, int, float, bool)),
}


def validate(obj: dict[str, Any], schema: TypedSchema, *, duplicates: bool = False) -> str:
    """Returns upstream's errors, or "". `duplicates` allows equal keys in list maps and sets."""
    if duplicates and fits(schema.root, obj):
        return ""
    problems = [
        f"{path}: {message}" if path else message
        for path, message in flattened(_check(schema.root, obj, "", duplicates))
    ]
    return (
        problems[0] if len(problems) == 1 else "\n".join(["errors:", *("  " + p for p in problems)]) if problems else ""
    )


def fits(node: Node, value: Any) -> bool:
    """Reports whether a value fits its type, where equal keys in list maps and sets are allowed."""
    kind = type(value)
    try:
        if kind is dict and node.is_map:
            fields, element = node.fields, node.element
            for key, item in value.items():
                child = fields.get(key) or element
                if child is None or not (type(item) in _FITTING[child.scalar] or fits(child, item)):
                    return False
            return True
        if kind is list and node.items is not None:
            items = node.items
            if not has_elements(node, value):
                return False
            fitting = _FITTING[items.scalar]
            for item in value:  # noqa: SIM110  # a generator would be another frame of each level
                if not (type(item) in fitting or fits(items, item)):
                    return False
            return True
    except RecursionError:
        return continued(fits, node, value)
    return kind in _FITTING[node.scalar] or not _mismatch(node, value)


def has_elements(node: Node, value: list[Any]) -> bool:
    """Reports whether each item of a list has a path element, as those of an atomic list need not."""
    if node.atomic_list:
        return True
    try:
        for item in value:
            node.item_element(item)
    except NoPathElement:
        return False
    return True


def _check(node: Node, value: Any, path: str, duplicates: bool) -> Walk[Problem]:
    if isinstance(value, dict) and node.is_map:
        yield _check_map(node, value, path, duplicates)
    elif isinstance(value, list) and node.items is not None:
        yield _check_list(node, value, path, duplicates)
    elif value is not None and (message := _mismatch(node, value)):
        yield path, message


def _check_map(node: Node, value: dict[str, Any], path: str, duplicates: bool) -> Walk[Problem]:
    for key, item in value.items():
        child = node.child(key)
        if child is None:
            yield f"{path}.{key}", "field not declared in schema"
            return
        yield _check(child, item, f"{path}.{key}", duplicates)


def _check_list(node: Node, value: list[Any], path: str, duplicates: bool) -> Walk[Problem]:
    if node.items is None:
        return
    seen: set[str] = set()
    for i, item in enumerate(value):
        text = f"[{i}]"
        if not node.atomic_list:
            try:
                element = node.item_element(item)
            except NoPathElement as error:
                yield path, f"element {i}: {error}"
                return
            text = path_text((element,))
            if element in seen and not duplicates:
                yield path, f"duplicate entries for key {text}"
            seen.add(element)
        yield _check(node.items, item, path + text, duplicates)


def _mismatch(node: Node, value: Any) -> str:
    """Returns the error of a value that is neither the map nor the list that its type allows."""
    if node.is_map:
        fits_scalar = node.scalar and not isinstance(value, dict | list | GoValue)
        return "" if fits_scalar else f"expected map, got &{{{go_value(value)}}}"
    if node.scalar == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"
    if node.scalar == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return f"expected numeric (int or float), got {go_type(value)}"
    if node.scalar == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &{{{go_value(value)}}}"
    if node.scalar == "untyped" and isinstance(value, dict | list | GoValue):
        return f"expected any scalar, got &{{{go_value(value)}}}"
    return "" if node.scalar else f"expected list, got &{{{go_value(value)}}}"
