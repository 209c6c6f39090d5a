"""Attacks with bodies in protobuf and in chunks, and with deletions of many objects."""

from collections.abc import Callable, Iterator
from typing import Final

from conformance.robustness.attacks.attack import BODY, Attack, Call, encoded, named, posted
from fakeapiserver.apimachinery.serializer.protobuf.wire import DELIMITED, tag, varint

_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_NAMESPACE: Final = "/api/v1/namespaces/attack-crowd"
_CONFIGMAPS: Final = "/api/v1/namespaces/default/configmaps"
_PODS: Final = "/api/v1/namespaces/default/pods"
_CROWD: Final = 2_000
# Seconds after the answer in which the namespace's objects are deleted.
_EMPTYING: Final = 10.0


def _field(number: int, value: bytes) -> bytes:
    """A field with a length: a text, bytes or a message."""
    return tag(number, DELIMITED) + varint(len(value)) + value


def _message(kind: str, *fields: bytes) -> bytes:
    """An object whose metadata has a name, in the envelope of Kubernetes (runtime.Unknown)."""
    type_meta = _field(1, b"v1") + _field(2, kind.encode())
    raw = _field(1, _field(1, b"wire")) + b"".join(fields)
    return b"k8s\0" + _field(1, type_meta) + _field(2, raw)


def _entries(count: int) -> bytes:
    return b"".join(_field(2, _field(1, b"k%d" % i) + _field(2, b"v")) for i in range(count))


def _nested(depth: int) -> bytes:
    """A message of a number that no kind has, in itself."""
    value = b""
    for _ in range(depth):
        value = _field(200, value)
    return value


# Bodies in protobuf: of pods (their spec is field 2, its containers are field 2) and config maps (their data are field 2).
_BODIES: Final[dict[str, tuple[str, Callable[[], bytes]]]] = {
    "200,000 keys": (_CONFIGMAPS, lambda: _message("ConfigMap", _entries(200_000))),
    "the same key": (_CONFIGMAPS, lambda: _message("ConfigMap", _field(2, _field(1, b"k")) * (BODY // 8))),
    "empty containers": (_PODS, lambda: _message("Pod", _field(2, _field(2, b"") * (BODY // 2 - 100)))),
    "containers": (_PODS, lambda: _message("Pod", _field(2, _field(2, _field(1, b"c")) * (BODY // 6)))),
    "specs": (_PODS, lambda: _message("Pod", _field(2, b"") * (BODY // 2 - 100))),
    "unknown fields": (_PODS, lambda: _message("Pod", _field(200, b"") * (BODY // 4))),
    "10,000 levels of unknown fields": (_PODS, lambda: _message("Pod", _nested(10_000))),
    "unknown numbers": (_PODS, lambda: _message("Pod", b"\xc0\x0c\x00" * (BODY // 4))),
    "labels": (
        _PODS,
        lambda: _message("Pod", _field(1, b"".join(_field(11, _field(1, b"k%d" % i)) for i in range(200_000)))),
    ),
    "a length beyond the end": (_PODS, lambda: _message("Pod")[:-1] + b"\xff\xff\xff\xff\x0f"),
    "a text that isn't UTF-8": (
        _CONFIGMAPS,
        lambda: _message("ConfigMap", _field(2, _field(1, b"\xff" * (BODY // 2)))),
    ),
}


def _in_chunks(body: bytes, size: int, extension: bytes = b"", trailers: bytes = b"") -> bytes:
    parts = (body[start : start + size] for start in range(0, len(body), size))
    chunks = b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts)
    return chunks + b"0\r\n" + trailers + b"\r\n"


def _config_map(size: int) -> bytes:
    return encoded({**named("v1", "ConfigMap", "chunks"), "data": {"k": "v" * size}})


_CHUNKS: Final[dict[str, Callable[[], bytes]]] = {
    "one byte": lambda: _in_chunks(_config_map(500_000), 1),
    "a line": lambda: _in_chunks(_config_map(900_000), 80),
    "one byte with extensions": lambda: _in_chunks(_config_map(20_000), 1, b";a=" + b"b" * 100),
    "a long extension": lambda: _in_chunks(_config_map(100), 1_000, b";" + b"a" * 1_000_000),
    "many trailers": lambda: _in_chunks(
        _config_map(100), 1_000, trailers=b"".join(b"X-%d: v\r\n" % i for i in range(100_000))
    ),
    "a long trailer": lambda: _in_chunks(_config_map(100), 1_000, trailers=b"X: " + b"v" * 1_000_000 + b"\r\n"),
    "zeros before the size": lambda: b"0" * 1_000_000 + _in_chunks(_config_map(100), 1_000),
}


def _crowd(number: int) -> Call:
    return posted(f"{_NAMESPACE}/configmaps", lambda: named("v1", "ConfigMap", f"c{number}"))


def attacks() -> Iterator[Attack]:
    for name, (path, body) in _BODIES.items():
        yield Attack(f"protobuf: {name}", Call("POST", path, body, _PROTOBUF))
    for name, body in _CHUNKS.items():
        yield Attack(
            f"chunks: {name}", Call("POST", f"{_CONFIGMAPS}?dryRun=All", body, headers={"Transfer-Encoding": "chunked"})
        )
    namespace = posted("/api/v1/namespaces", lambda: named("v1", "Namespace", "attack-crowd"))
    before = (namespace, *map(_crowd, range(_CROWD)))
    yield Attack("deletion: a list of 2,000", Call("DELETE", f"{_NAMESPACE}/configmaps?dryRun=All"), before)
    yield Attack("deletion: a namespace with 2,000 objects", Call("DELETE", _NAMESPACE), before, _EMPTYING)
