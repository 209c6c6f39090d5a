"""Field sets against the schema: which named fields they imply, and what a change from granular to atomic makes of them.

Upstream: sigs.k8s.io/structured-merge-diff/v6/typed/reconcile_schema.go, fieldpath/set.go (EnsureNamedFieldsAreMembers).
"""

from fakeapiserver.apimachinery.depth import continued
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet
from fakeapiserver.apimachinery.managedfields.typed import UNTYPED, Node


def with_named_fields(node: Node | None, fields: FieldSet) -> FieldSet:
    """The set with every struct field on the way to a member a member too; keys of maps are not."""
    out: FieldSet = {}
    for key, below in fields.items():
        if key == "." or not below:
            out[key] = below
            continue
        child = _child(node, key)
        try:
            inner = with_named_fields(child, below)
        except RecursionError:
            return continued(with_named_fields, node, fields)
        named = node is not None and node.is_map and key[0] == "f" and node.fields.get(key[2:]) is not None
        out[key] = {".": {}, **inner} if named else inner
    return out


def _child(node: Node | None, key: str) -> Node | None:
    if node is None:
        return None
    if key[0] == "f":
        return node.child(key[2:]) if node.is_map else None
    return node.items if key[0] == "k" else None


def reconcile(node: Node, fields: FieldSet) -> FieldSet:
    """The set with what lies below a now atomic list or map replaced by that list or map. The same set if nothing changed."""
    changed: FieldSet | None = None
    for key, below in fields.items():
        if key == ".":
            continue
        child = node.child(key[2:]) if node.is_map and key[0] == "f" else node.items if key[0] != "f" else None
        try:
            after = _reconcile_node(child, below) if child is not None and below else below
        except RecursionError:
            return continued(reconcile, node, fields)
        if after is not below:
            changed = dict(fields) if changed is None else changed
            changed[key] = after
    return fields if changed is None else changed


def _reconcile_node(node: Node, below: FieldSet) -> FieldSet:
    if node is UNTYPED:
        return below
    if node.is_map:
        if not node.fields and node.element is not None and node.element.scalar == "untyped":
            return below
        return {} if node.atomic_map else reconcile(node, below)
    if node.items is not None and not node.scalar:
        return {} if node.atomic_list else reconcile(node, below)
    return below
