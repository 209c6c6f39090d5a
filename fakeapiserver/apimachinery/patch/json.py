"""JSON patch (RFC 6902) with the rules of the library kube-apiserver uses, which differ from the RFC's in places.

A replaced member need not exist, negative indexes count from the end, `01` is an index, a missing value is null, a path that lacks
its first slash loses its first word, and `test` compares scalars by their text: `1.0` is not `1` and `"\\u0031"` is not `"1"`.
Upstream: gopkg.in/evanphx/json-patch.v4/patch.go, k8s.io/apiserver/pkg/endpoints/handlers/patch.go (jsonPatcher).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, status_error
from fakeapiserver.apimachinery.go.strconv import atoi
from fakeapiserver.apimachinery.patch.operations import MAX_OPERATIONS, Operation, complaints, decode
from fakeapiserver.apimachinery.patch.texts import Panic, equal, go_text, plain, with_texts
from fakeapiserver.apimachinery.serializer import json

__all__ = ["MAX_OPERATIONS", "Inapplicable", "Operation", "applied", "apply", "complaints", "decode"]

MAX_COPIED_BYTES: Final = 3 * 1024 * 1024  # of all copies in one patch
_ESCAPE: Final = re.compile("~[01]")


class Inapplicable(Exception):
    """The patch does not apply. The text is from upstream's library; only errors of webhooks show it."""


class TestFailed(Inapplicable):
    """The value that an operation tests is another one."""


def apply(doc: Any, operations: Sequence[Operation]) -> Any:
    """The document with the operations applied, in order; `doc` and the operations stay as they are, the result shares with both.

    Raises StatusError 422, with the one text upstream shows, for an operation that does not apply and for a failed test.
    """
    try:
        return applied(doc, operations)
    except Inapplicable:
        raise _does_not_apply() from None
    except Panic:
        raise new_bad_request("Invalid JSON Patch") from None


def applied(doc: Any, operations: Sequence[Operation]) -> Any:
    """Does what `apply` does. Raises Inapplicable, and Panic where upstream's library panics."""
    document = _Document(doc, any(operation.op == "test" for operation in operations))
    for operation in operations:
        _STEPS.get(operation.op, _unknown)(document, operation)
    return plain(document.root) if document.written else document.root


def _does_not_apply() -> StatusError:
    return status_error(422, "Invalid", "the server rejected our request due to an error in our request", {})


class _Document:
    """A document under change: containers are copied when first written to."""

    def __init__(self, root: Any, tested: bool) -> None:
        self.root = root
        self.written = False
        self.copied = 0
        self._tested = tested
        self._owned: dict[int, Any] = {}  # by id; holds the containers, so that no id is used again

    def read(self, path: str, missing: str) -> tuple[Any, str]:
        """The container `path` ends in and the key there. Inapplicable: `missing`, and the path."""
        words, key = _words(path)
        node = self.root
        for word in words:
            node = _child(node, word)
            if type(node) not in (dict, list):
                raise Inapplicable(f"{missing}: missing value")
        if key is None:
            raise Inapplicable(f"{missing}: missing value")
        return node, key

    def change(self, path: str, missing: str) -> tuple[Any, str]:
        """Does what read() does, and returns a container that may be changed."""
        words, key = _words(path)
        if key is None:
            raise Inapplicable(f"{missing}: missing value")
        node = self.root = self._own(self.root)
        for word in words:
            child = _child(node, word)
            if type(child) not in (dict, list):
                raise Inapplicable(f"{missing}: missing value")
            owned = self._own(child)
            node[word if type(node) is dict else _index(node, word)] = owned
            node = owned
        return node, key

    def value_of(self, operation: Operation) -> Any:
        """The value to put in, with its texts kept if a test could see them."""
        if not self._tested or operation.text is None:
            return operation.value
        value = with_texts(operation.value, operation.text)
        self.written = self.written or value is not operation.value
        return value

    def _own(self, container: Any) -> Any:
        if id(container) in self._owned:
            return container
        copy = container.copy()
        self._owned[id(copy)] = copy
        return copy


def _words(path: str) -> tuple[list[str], str | None]:
    """The containers on the way, and the key in the last; no key where the path leads nowhere."""
    words = path.split("/")
    if len(words) < 2:
        return [], None
    if "~" in path:
        words = [_ESCAPE.sub(lambda match: "/" if match[0] == "~1" else "~", word) for word in words]
    return words[1:-1], words[-1]


def _number(key: str) -> int:
    try:
        return atoi(key)
    except ValueError as error:
        raise Inapplicable(str(error)) from None


def _in_range(index: int, size: int) -> int:
    if not -size <= index < size:
        raise Inapplicable(f"Unable to access invalid index: {index}: invalid index referenced")
    return index


def _index(array: list[Any], key: str) -> int:
    return _in_range(_number(key), len(array))


def _child(container: Any, key: str) -> Any:
    """Returns the child, or None if there is no such child."""
    try:
        return _get(container, key)
    except Inapplicable:
        return None


def _get(container: Any, key: str) -> Any:
    """A member that is missing reads as null; an index that is missing fails."""
    return container.get(key) if type(container) is dict else container[_index(container, key)]


def _put(container: Any, key: str, value: Any) -> None:
    if type(container) is dict:
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        try:
            number = _number(key)
        except Inapplicable as error:
            raise Inapplicable(f"value was not a proper array index: '{key}': {error}") from None
        size = len(container) + 1
        index = _in_range(number, size)
        container.insert(index + size if index < 0 else index, value)


def _delete(container: Any, key: str) -> None:
    if type(container) is dict and key not in container:
        raise Inapplicable(f"Unable to remove nonexistent key: {key}: missing value")
    del container[key if type(container) is dict else _index(container, key)]


@contextmanager
def _saying(what: str) -> Iterator[None]:
    try:
        yield
    except Inapplicable as error:
        raise Inapplicable(f"{what}: {error}") from None


def _path(operation: Operation, *, told: bool = True) -> str:
    """Returns the operation's path. Two operations don't say what is wrong with it."""
    if operation.path is None:
        why = (operation.mistyped or "operation missing path field: missing value") if told else "missing value"
        raise Inapplicable(f"{operation.op} operation failed to decode path: {why}")
    return operation.path


def _source(operation: Operation) -> str:
    if operation.source is None:
        why = operation.mistyped_source or "operation, missing from field: missing value"
        raise Inapplicable(f"{operation.op} operation failed to decode from: {why}")
    return operation.source


def _add(document: _Document, operation: Operation) -> None:
    path = _path(operation, told=False)
    container, key = document.change(path, f'add operation does not apply: doc is missing path: "{path}"')
    with _saying(f"error in add for path: '{path}'"):
        _put(container, key, document.value_of(operation))


def _remove(document: _Document, operation: Operation) -> None:
    path = _path(operation, told=False)
    container, key = document.change(path, f'remove operation does not apply: doc is missing path: "{path}"')
    with _saying(f"error in remove for path: '{path}'"):
        _delete(container, key)


def _replace(document: _Document, operation: Operation) -> None:
    path = _path(operation)
    if path == "":
        if operation.text is None:
            raise Panic
        if type(operation.value) not in (dict, list):
            raise Inapplicable("replace operation value must be object or array: %!w(<nil>)")
        document.root = document.value_of(operation)
        return
    container, key = document.change(path, f"replace operation does not apply: doc is missing path: {path}")
    try:
        index = key if type(container) is dict else _index(container, key)
    except Inapplicable:
        raise Inapplicable(f"replace operation does not apply: doc is missing key: {path}: missing value") from None
    container[index] = document.value_of(operation)


def _move(document: _Document, operation: Operation) -> None:
    source = _source(operation)
    container, key = document.change(source, f"move operation does not apply: doc is missing from path: {source}")
    with _saying(f"error in move for path: '{key}'"):
        value = _get(container, key)
        _delete(container, key)
    path = _path(operation)
    container, key = document.change(path, f"move operation does not apply: doc is missing destination path: {path}")
    with _saying(f"error in move for path: '{path}'"):
        _put(container, key, value)


def _copy(document: _Document, operation: Operation) -> None:
    source = _source(operation)
    container, key = document.read(source, f"copy operation does not apply: doc is missing from path: {source}")
    with _saying(f"error in copy for from: '{source}'"):
        value = _get(container, key)
    path = _path(operation, told=False)
    container, key = document.change(path, f"copy operation does not apply: doc is missing destination path: {path}")
    text = go_text(plain(value) if document.written else value)
    document.copied += 0 if value is None else len(text)
    if document.copied > MAX_COPIED_BYTES:
        raise Inapplicable(
            f"Unable to complete the copy, the accumulated size increase of copy is {document.copied}, exceeding the limit "
            f"{MAX_COPIED_BYTES}"
        )
    # Two places that share a container would change together in whatever changes the result.
    with _saying("error while adding value during copy"):
        _put(container, key, json.decode(text) if type(value) in (dict, list) else value)


def _test(document: _Document, operation: Operation) -> None:
    path = _path(operation)
    failed = TestFailed(f"testing value {path} failed: test failed")
    if path == "":
        if operation.text is None:
            raise Panic
        if not equal(document.root, operation.text):
            raise failed
        return
    container, key = document.read(path, f"test operation does not apply: is missing path: {path}")
    with _saying(f"error in test for path: '{path}'"):
        value = _get(container, key)
    if not (_is_null(operation) if value is None else operation.text is not None and equal(value, operation.text)):
        raise failed


def _is_null(operation: Operation) -> bool:
    return operation.text in (None, b"null")


def _unknown(document: _Document, operation: Operation) -> None:
    raise Inapplicable(f"Unexpected kind: {operation.op}")


_STEPS: Final[dict[str, Callable[[_Document, Operation], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
