"""Decodes the metadata of custom resources and of embedded resources, as that of every other kind."""

from functools import cache
from typing import Final

from fakeapiserver.apimachinery.schema.builtin import BuiltinType, compile_builtin
from fakeapiserver.apis import scheme

_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@cache
def object_meta() -> BuiltinType:
    """ObjectMeta is the same in every recorded version."""
    return compile_builtin(scheme.load().definitions, _OBJECT_META)
