"""JSON patch (RFC 6902) with the rules of the library kube-apiserver uses, which differ from the RFC's in places.

A replaced member need not exist, negative indexes count from the end, `01` is an index, a missing value is null, a path that lacks
its first slash loses its first word, and `test` compares scalars by their text: `1.0` is not `1` and `"\\u0031"` is not `"1"`.
Upstream: gopkg.in/evanphx/json-patch.v4/patch.go, k8s.io/apiserver/pkg/endpoints/handlers/patch.go (jsonPatcher).
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, status_error
from fakeapiserver.apimachinery.patch.operations import MAX_OPERATIONS, Operation, complaints, decode
from fakeapiserver.apimachinery.patch.texts import Panic, equal, go_text, plain, with_texts
from fakeapiserver.apimachinery.serializer import json

__all__ = ["MAX_OPERATIONS", "Operation", "apply", "complaints", "decode"]

MAX_COPIED_BYTES: Final = 3 * 1024 * 1024  # of all copies in one patch
_INDEX: Final = re.compile(r"[+-]?[0-9]+")
_ESCAPE: Final = re.compile("~[01]")


class _Failed(Exception):
    """The patch does not apply. Why is lost on the way: the server shows one message for all reasons."""


def apply(doc: Any, operations: Sequence[Operation]) -> Any:
    """The document with the operations applied, in order; `doc` and the operations stay as they are, the result shares with both.

    Raises StatusError 422, with the one text upstream shows, for an operation that does not apply and for a failed test.
    """
    document = _Document(doc, any(operation.op == "test" for operation in operations))
    try:
        for operation in operations:
            _STEPS.get(operation.op, _unknown)(document, operation)
    except (_Failed, RecursionError):
        raise _does_not_apply() from None
    except Panic:
        raise new_bad_request("Invalid JSON Patch") from None
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

    def read(self, path: str | None) -> tuple[Any, str]:
        """The container `path` ends in and the key there."""
        words, key = _words(path)
        node = self.root
        for word in words:
            node = _get(node, word)
            if type(node) not in (dict, list):
                raise _Failed
        return node, key

    def change(self, path: str | None) -> tuple[Any, str]:
        """As read(), with a container that may be written to."""
        words, key = _words(path)
        node = self.root = self._own(self.root)
        for word in words:
            child = _get(node, word)
            if type(child) not in (dict, list):
                raise _Failed
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


def _words(path: str | None) -> tuple[list[str], str]:
    if path is None:
        raise _Failed
    words = path.split("/")
    if len(words) < 2:
        raise _Failed
    if "~" in path:
        words = [_ESCAPE.sub(lambda match: "/" if match[0] == "~1" else "~", word) for word in words]
    return words[1:-1], words[-1]


def _number(key: str) -> int:
    if not _INDEX.fullmatch(key) or len(key) > 19:
        raise _Failed
    return int(key)


def _index(array: list[Any], key: str) -> int:
    index = _number(key)
    if not -len(array) <= index < len(array):
        raise _Failed
    return index


def _get(container: Any, key: str) -> Any:
    """A member that is missing reads as null; an index that is missing fails."""
    return container.get(key) if type(container) is dict else container[_index(container, key)]


def _put(container: Any, key: str, value: Any) -> None:
    if type(container) is dict:
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        index, size = _number(key), len(container) + 1
        if not -size <= index < size:
            raise _Failed
        container.insert(index + size if index < 0 else index, value)


def _delete(container: Any, key: str) -> None:
    if type(container) is dict and key not in container:
        raise _Failed
    del container[key if type(container) is dict else _index(container, key)]


def _add(document: _Document, operation: Operation) -> None:
    container, key = document.change(operation.path)
    _put(container, key, document.value_of(operation))


def _remove(document: _Document, operation: Operation) -> None:
    _delete(*document.change(operation.path))


def _replace(document: _Document, operation: Operation) -> None:
    if operation.path == "":
        if operation.text is None:
            raise Panic
        if type(operation.value) not in (dict, list):
            raise _Failed
        document.root = document.value_of(operation)
        return
    container, key = document.change(operation.path)
    container[key if type(container) is dict else _index(container, key)] = document.value_of(operation)


def _move(document: _Document, operation: Operation) -> None:
    container, key = document.change(operation.source)
    value = _get(container, key)
    _delete(container, key)
    container, key = document.change(operation.path)
    _put(container, key, value)


def _copy(document: _Document, operation: Operation) -> None:
    value = _get(*document.read(operation.source))
    container, key = document.change(operation.path)
    text = go_text(plain(value) if document.written else value)
    document.copied += 0 if value is None else len(text)
    if document.copied > MAX_COPIED_BYTES:
        raise _Failed
    # Two places that share a container would change together in whatever changes the result.
    _put(container, key, json.decode(text) if type(value) in (dict, list) else value)


def _test(document: _Document, operation: Operation) -> None:
    if operation.path == "":
        if operation.text is None:
            raise Panic
        if not equal(document.root, operation.text):
            raise _Failed
        return
    value = _get(*document.read(operation.path))
    if not (_is_null(operation) if value is None else operation.text is not None and equal(value, operation.text)):
        raise _Failed


def _is_null(operation: Operation) -> bool:
    return operation.text in (None, b"null")


def _unknown(document: _Document, operation: Operation) -> None:
    raise _Failed


_STEPS: Final[dict[str, Callable[[_Document, Operation], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
