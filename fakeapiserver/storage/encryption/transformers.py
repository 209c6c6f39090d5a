"""Values as they are in etcd, and back: chosen by a prefix of the value, such as `k8s:enc:aescbc:v1:key1:`.

The first transformer of a list writes; whichever fits the prefix reads.

Upstream: k8s.io/apiserver/pkg/storage/value/transformer.go, pkg/storage/value/encrypt/identity.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupResource

ENCRYPTED: Final = b"k8s:enc:"
ANY: Final = "*"
_ENCRYPTED_ERROR: Final = "identity transformer tried to read encrypted data"


class TransformError(ValueError):
    """A value can't be decrypted. The text is upstream's, of all transformers that were tried."""

    def __init__(self, *texts: str) -> None:
        self.texts = tuple(dict.fromkeys(texts))
        super().__init__(self.texts[0] if len(self.texts) == 1 else f"[{', '.join(self.texts)}]")


class Plain(Struct, frozen=True):
    """A decrypted value. `is_stale`: an update that changes nothing writes it again all the same, with the first key."""

    value: bytes
    is_stale: bool = False


class Transformer(Protocol):
    """`place` is the key in etcd, which some transformers authenticate together with the value."""

    def read(self, data: bytes, place: bytes) -> Plain:
        """Raises TransformError."""

    def write(self, value: bytes, place: bytes) -> bytes:
        """The bytes for etcd."""


class Identity:
    """Leaves values as they are, and reads none that is encrypted."""

    def read(self, data: bytes, place: bytes) -> Plain:
        if data.startswith(ENCRYPTED):
            raise TransformError(_ENCRYPTED_ERROR)
        return Plain(data)

    def write(self, value: bytes, place: bytes) -> bytes:
        return value


class Prefixed(Struct, frozen=True):
    """Transformers by the prefix of their values; `unmatched` is the error for another prefix."""

    unmatched: str
    transformers: Sequence[tuple[bytes, Transformer]]

    def read(self, data: bytes, place: bytes) -> Plain:
        """Tries all whose prefix fits: two providers of one type have the same prefix, but other keys."""
        texts: list[str] = []
        for i, (prefix, transformer) in enumerate(self.transformers):
            if not data.startswith(prefix):
                continue
            try:
                plain = transformer.read(data[len(prefix) :], place)
            except TransformError as error:
                texts += error.texts if prefix else ()
                continue
            return Plain(plain.value, plain.is_stale or i > 0)
        raise TransformError(*texts or (self.unmatched,))

    def write(self, value: bytes, place: bytes) -> bytes:
        prefix, transformer = self.transformers[0]
        return prefix + transformer.write(value, place)


IDENTITY: Final = Identity()


class ResourceTransformers(Struct, frozen=True):
    """The transformers of resources. A resource that isn't named has those of `*.group`, then those of `*.*`, and isn't encrypted without
    either."""

    overrides: Mapping[GroupResource, Transformer]

    def of(self, resource: GroupResource) -> Transformer:
        return next(filter(None, map(self.overrides.get, _names(resource))), IDENTITY)

    def readings(self, data: bytes, place: bytes) -> Iterator[bytes]:
        """Yields what each transformer reads, for values of which only the key in etcd is known. One with a wrong key may read nonsense."""
        for transformer in self.overrides.values():
            with suppress(TransformError):
                yield transformer.read(data, place).value


NO_ENCRYPTION: Final = ResourceTransformers({})


def _names(resource: GroupResource) -> Iterator[GroupResource]:
    yield resource
    yield GroupResource(resource.group, ANY)
    yield GroupResource(ANY, ANY)
