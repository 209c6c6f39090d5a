"""Fields of definitions whose types have their own decoders: duplicates in them are not reported."""

import pytest

from fakeapiserver.apimachinery.schema.decoders import is_read_apart

_SCHEMA = "spec.versions[0].schema.openAPIV3Schema"


@pytest.mark.parametrize(
    ("path", "apart"),
    [
        (".type", False),
        (".properties.items.type", False),
        (".properties.a.items", False),
        (".properties.a.items.type", True),
        (".properties.a.items.properties.b.type", True),
        (".additionalProperties.type", True),
        (".allOf[1].not.default.a", True),
        (".properties.default.x-kubernetes-validations[0].rule", False),
    ],
)
def test_what_is_inside_of_items_and_the_like(path: str, apart: bool) -> None:
    assert is_read_apart(_SCHEMA + path) is apart
    assert not is_read_apart("spec" + path)
