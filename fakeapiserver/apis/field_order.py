"""The order of the fields of Go's structs.

Upstream: the types.go files of k8s.io/api and others, recorded in apimachinery/schema/field_order.json.
"""

from functools import cache
from typing import Final

from fakeapiserver.apimachinery.schema.go_types import recorded_field_orders
from fakeapiserver.apis import protobuf as protobuf_messages

_TYPE: Final = frozenset(("kind", "apiVersion"))


@cache
def field_order(definition: str) -> tuple[str, ...]:
    """The fields of a definition's Go struct in its order; of a type that only older versions have, in the order of the numbers of
    protobuf's fields. Empty for maps."""
    fields = recorded_field_orders().get(definition)
    if fields is None:
        message = protobuf_messages.messages().get("k8s.io." + definition.removeprefix("io.k8s.").replace("-", "_"), {})
        fields = tuple(message[number][0] for number in sorted(message))
    return fields if not _TYPE.isdisjoint(fields) else ("kind", "apiVersion", *fields)
