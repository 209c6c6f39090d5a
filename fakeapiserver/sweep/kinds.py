"""The kinds of objects, by which people call them: `the Secret shop/db` rather than `secrets shop/db`."""

from collections.abc import Iterable, Mapping
from functools import cache

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis import scheme


def custom(objects: Iterable[Object]) -> Mapping[str, str]:
    """The kinds that the CustomResourceDefinitions among the objects define, by resources such as `widgets.example.com`."""
    return {
        obj["metadata"]["name"]: obj["spec"]["names"]["kind"]
        for obj in objects
        if "group" in (spec := obj.get("spec") or {}) and "kind" in (spec.get("names") or {})
    }


def of_resource(resource: str, known: Mapping[str, str] = {}) -> str:
    """The kind of `pods`, `deployments` or `widgets.example.com`; "" for an unknown resource."""
    return known.get(resource) or _built_in().get(resource, "")


def spoken(title: str, kind: str = "") -> str:
    """The object in a sentence: `the Secret shop/db` for the title `secrets shop/db`, which is returned if the kind isn't known."""
    resource, _, name = title.partition(" ")
    kind = kind or of_resource(resource)
    return f"the {kind} {name}" if kind else title


@cache
def _built_in() -> Mapping[str, str]:
    """The kinds by the plural, and by the plural and the group. If several groups have a plural, the first group counts."""
    kinds: dict[str, str] = {}
    for gvr, row in scheme.load().resources.items():
        kinds.setdefault(gvr.resource, row.gvk.kind)
        kinds.setdefault(f"{gvr.resource}.{gvr.group}", row.gvk.kind)
    return kinds
