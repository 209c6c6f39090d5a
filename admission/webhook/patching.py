"""Why a JSON patch doesn't apply, in the words of upstream's library.

Upstream: gopkg.in/evanphx/json-patch.v4/patch.go.
"""

from typing import Any

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.patch import json as json_patch


def why_not(obj: Object, operations: list[json_patch.Operation]) -> str:
    """What is wrong with the first operation that doesn't apply."""
    for operation in operations:
        try:
            obj = json_patch.apply(obj, [operation])
        except StatusError:
            break
    op, path, source = operation.op, operation.path or "", operation.source or ""
    parent, _, key = path.rpartition("/")
    if op == "test" and not _exists(obj, parent):
        return f"test operation does not apply: is missing path: {path}: missing value"
    if op == "test":
        return f"testing value {path} failed: test failed"
    if op == "remove":
        if _exists(obj, parent):
            return f"error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
        return f'remove operation does not apply: doc is missing path: "{path}": missing value'
    if op == "add":
        return f'add operation does not apply: doc is missing path: "{path}": missing value'
    if op == "replace":
        return f"replace operation does not apply: doc is missing path: {path}: missing value"
    if op in ("move", "copy"):
        return f"{op} operation does not apply: doc is missing from path: {source}: missing value"
    return f"Unexpected kind: {op}"


def _exists(obj: Object, path: str) -> bool:
    node: Any = obj
    for word in path.split("/")[1:]:
        if isinstance(node, list) and word.isdecimal() and int(word) < len(node):
            node = node[int(word)]
        elif isinstance(node, dict) and word in node:
            node = node[word]
        else:
            return False
    return isinstance(node, dict | list)
