"""The served versions of one stored kind, and the way of an object from one to another.

Most versions of a built-in kind differ in nothing but apiVersion; `apis/conversion.py` has the others. Custom resources have a
subclass of their own, `registry/apiextensions/custom_versions.py`.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/versioning/versioning.go,
k8s.io/apimachinery/pkg/util/managedfields/internal/versionconverter.go.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis import conversion
from fakeapiserver.effort import computed
from fakeapiserver.registry.generic.canonical import Encode, Encoded
from fakeapiserver.registry.generic.kind import Kind

if TYPE_CHECKING:
    from fakeapiserver.apimachinery.managedfields.typed import TypedSchema

KindIn = Callable[[str], Kind]


class Versions:
    """The versions of a built-in kind. `gvk` is the version that storage takes and gives."""

    # Whether stored objects may be older than the schema, so that they need `refresh` when they are read.
    refreshes = False

    def __init__(self, gvk: GroupVersionKind, kind_in: KindIn, encode: Encode) -> None:
        self.gvk = gvk
        self._kind_in = kind_in
        # Gives objects in the version that storage takes their stored form.
        self.encode = encode

    def kind_in(self, api_version: str) -> Kind:
        """The kind as another version (`apps/v1`) serves it. LookupError if that version doesn't serve it."""
        return self._kind_in(api_version)

    def typed(self, api_version: str) -> "TypedSchema":
        """The schema by which a version's fields are owned. LookupError as `kind_in`."""
        return self.kind_in(api_version).typed

    def serves(self, obj: Object) -> bool:
        """Reports whether the object's own apiVersion and kind are served."""
        try:
            return bool(self.kind_in(obj["apiVersion"]).gvk.kind == obj["kind"])
        except LookupError:
            return False

    @property
    def stored_version(self) -> str:
        """The version that objects are written in, which the index keeps."""
        return self.gvk.version

    # ------------------------------------------------------------- conversions

    def convert(self, obj: Object, gvk: GroupVersionKind) -> Object:
        """The object in another version, with all its fields. Raises ValueError if the object can't be converted."""
        return conversion.convert(obj, gvk)

    def converted(self, obj: Object, gvk: GroupVersionKind) -> Object:
        """The object in another version, with the fields of that version. Raises ValueError if the object can't be converted."""
        return self.convert(obj, gvk)

    def to_storage(self, obj: Object) -> Object:
        """The object in the version that storage takes."""
        return obj if obj.get("apiVersion") == self.gvk.api_version else self.converted(obj, self.gvk)

    def in_version(self, obj: Object, api_version: str) -> Object:
        """The object as a field manager sees it who wrote in `api_version`, with fields that version doesn't know.

        LookupError: the version isn't served, or only under another group's name (upstream forgets what was written to an
        event by its other name). ValueError: the object can't be converted, as to a custom resource's version that is gone."""
        if obj["apiVersion"].rpartition("/")[0] != api_version.rpartition("/")[0]:
            raise LookupError(api_version)
        source = self.kind_in(obj["apiVersion"])
        try:
            target = self.kind_in(api_version)
        except LookupError:
            if not source.custom:
                raise
            raise ValueError(f"request to convert CR to an invalid group/version: {api_version}") from None
        obj = dict(obj)
        if not source.custom:
            source.decode(obj)  # as through Go's types, which restore the zeroes that a merge has taken out
        converted = self.convert(obj, target.gvk)
        if not target.custom:
            target.decode(converted)
        return converted

    async def settled(self, step: Callable[[], Object], size: int) -> Object:
        """The result of `step`, a pure function that may convert objects of about `size` bytes; it may be run more than once."""
        return await computed(step, size)

    # ----------------------------------------------------- to storage and back

    def refresh(self, obj: Object) -> None:
        """Brings an object that was stored under an earlier schema up to date, in place."""

    def as_stored(self, obj: Object) -> Object:
        """The object as it is stored, in the version that storage takes."""
        return obj

    async def rehearsed(self, encoded: Encoded) -> Encoded:
        """The stored form as storage would give it back, for the answer to a dry run."""
        return encoded
