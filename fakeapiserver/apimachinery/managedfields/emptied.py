"""Fields that an empty list or map changes, though the objects compared don't show it.

Upstream: sigs.k8s.io/structured-merge-diff/v6/value (listreflect.go, structreflect.go). Objects of Go's types have their empty
lists taken out, as storage does; Go compares before. To Go, a struct's empty fields with omitempty are absent, but
the items of a list that is owned as a whole are compared as
they are.
"""

from typing import Any, Final

from fakeapiserver.apimachinery.managedfields.compare import grouped
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet, insert
from fakeapiserver.apimachinery.managedfields.typed import Node, TypedSchema
from fakeapiserver.apimachinery.schema.decoders import Empties, Steps

_NOTHING: Final = Node("untyped")


def emptied(schema: TypedSchema, old: Any, new: Any, empties: Empties) -> FieldSet:
    """The leaves of `new` that differ from the stored `old` by what `empties` name. `old` None: a new object."""
    out: FieldSet = {}
    for steps in empties:
        path = _leaf(schema.root, schema.empty if old is None else old, new, steps)
        if path and is_empty(new, steps):
            insert(out, path)
    return out


def is_empty(obj: Any, steps: Steps) -> bool:
    """Reports whether the value that was sent empty is still empty: defaulting may have filled it."""
    for step in steps:
        obj = step_into(obj, step)
    return not obj


def step_into(value: Any, step: str | int) -> Any:
    """The field or item of a value; None if there is no such."""
    if isinstance(value, list):
        return value[step] if isinstance(step, int) and step < len(value) else None
    return value.get(step) if isinstance(value, dict) else None


def _leaf(node: Node, old: Any, new: Any, steps: Steps) -> tuple[str, ...] | None:
    path: list[str] = []
    whole = False  # the path is that of something owned as a whole
    for step in steps:
        if isinstance(step, int):
            if whole or node.atomic_list:
                return tuple(path)
            new = new[step]
            path.append(node.item_element(new))
            items = grouped(node, old).get(path[-1]) if isinstance(old, list) else None
            old, node = items[0] if items else None, node.items or _NOTHING
            continue
        if step not in new:
            return None
        whole = whole or node.atomic_map
        if not whole:
            path.append("f:" + step)
        node, new = node.child(step) or _NOTHING, new[step]
        old = old.get(step) if isinstance(old, dict) else None
    return tuple(path) if new is None and old is None else None
