"""Finds the fields of the kinds' schemas that no object of `rich_objects.json` has.

`python -m conformance.record.field_coverage --server URL --token T [--kind PART]` reads a server's schemas. Prints a line for each
collection and the fields that none of its objects has; `[]` is any item, `{}` any key. A type inside itself (a JSON schema's
schemas) is looked at once.
"""

import argparse
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.exchange import HERE, Client
from conformance.random.objects import Maker, Schema, Types

_SERVERS_OWN = ("apiVersion", "kind", "metadata")


def fields(maker: Maker, schema: Schema, path: str = "", outer: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths of all fields below a schema."""
    name = maker.name_of(schema)
    if name in outer:
        return
    schema, within = maker.resolved(schema), (*outer, name) if name else outer
    for key, inner in (schema.get("properties") or {}).items():
        if path or key not in _SERVERS_OWN:
            below = f"{path}.{key}".lstrip(".")
            yield below
            yield from fields(maker, inner, below, within)
    if "items" in schema:
        yield from fields(maker, schema["items"], f"{path}[]", within)
    if isinstance(others := schema.get("additionalProperties"), dict):
        yield from fields(maker, others, f"{path}{{}}", within)


def held(maker: Maker, schema: Schema, value: Any, path: str = "") -> Iterator[str]:
    """The paths of the fields that a value has."""
    schema = maker.resolved(schema) if schema else {}
    if isinstance(value, list):
        for item in value:
            yield from held(maker, schema.get("items") or {}, item, f"{path}[]")
    elif isinstance(value, Mapping):
        properties = schema.get("properties") or {}
        for key, inner in value.items():
            if key in properties:
                below = f"{path}.{key}".lstrip(".")
                yield below
                yield from held(maker, properties[key], inner, below)
            elif isinstance(others := schema.get("additionalProperties"), dict):
                yield from held(maker, others, inner, f"{path}{{}}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--kind", default="", help="only collections whose path has this in it")
    arguments = parser.parse_args()
    types = Types(Client(arguments.server, arguments.token))
    for collection, objects in json.loads((HERE / "rich_objects.json").read_text()).items():
        if arguments.kind in collection:
            schema, schemas = types.schema(collection)
            maker = Maker(random.Random(0), schemas, broken=0)
            wanted = list(fields(maker, schema))
            found = {path for obj in objects for path in held(maker, schema, obj)}
            missing = [path for path in wanted if path not in found]
            print(f"{collection}: {len(wanted) - len(missing)} of {len(wanted)}")
            print("".join(f"  {path}\n" for path in missing), end="")


if __name__ == "__main__":
    main()
