"""YAML as the API server reads and writes it: libyaml's events and Go's rules for their meaning.

Upstream: sigs.k8s.io/yaml, used by k8s.io/apimachinery/pkg/runtime/serializer/json/json.go.
"""

from typing import Any

from fakeapiserver.apimachinery.serializer.go_json import DecodeError, UnsupportedMapKey, YAMLError
from fakeapiserver.apimachinery.serializer.go_yaml import Constructor, compose
from fakeapiserver.apimachinery.serializer.go_yaml_emit import emit

__all__ = [
    "DecodeError",
    "UnsupportedMapKey",
    "YAMLError",
    "decode",
    "decode_with_duplicates",
    "duplicate_keys",
    "encode",
]


def decode(data: bytes) -> Any:
    """Decodes the first document of `data`, mappings sorted by key; None without a document.

    Raises DecodeError with upstream's text (`yaml: line 2: mapping values are not allowed in this context`), to which
    callers that decode through sigs.k8s.io/yaml's Unmarshal put `error converting YAML to JSON: ` in front.
    """
    return decode_with_duplicates(data)[0]


def duplicate_keys(data: bytes) -> list[str]:
    """Returns strict decoding's error, which names all repeated keys; empty without one."""
    return decode_with_duplicates(data)[1]


def decode_with_duplicates(data: bytes, *, exactly: bool = False) -> tuple[Any, list[str]]:
    """decode() and duplicate_keys() for the price of one. `exactly`: integers beyond int64 stay what they are."""
    root = compose(data)
    if root is None:
        return None, []
    constructor = Constructor(exactly=exactly)
    value = constructor.construct(root)
    if not constructor.duplicates:
        return value, []
    return value, ["yaml: unmarshal errors:\n  " + "\n  ".join(constructor.duplicates)]


def encode(obj: Any) -> bytes:
    """A block-style document, keys in natural order (`a2` before `a10`), quoted where Go quotes, lines folded at 80."""
    return emit(obj)
