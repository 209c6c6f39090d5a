"""Records the order of the fields of Go's structs.

    python record_field_order.py DEFINITIONS.json "$(go env GOMODCACHE)" v0.36 > fakeapiserver/apimachinery/schema/field_order.json

Reads upstream's sources, as record_go_types.py does. One line per definition: its JSON names in the order Go writes them.
"""

import json
import sys
from pathlib import Path

from record_go_types import ROOTS, fields, structs


def main(definitions_file: str, cache: str, version: str) -> None:
    definitions = json.loads(Path(definitions_file).read_text())
    found: dict[str, list[str]] = {}
    for name, schema in definitions.items():
        prefix = next((p for p in ROOTS if name.startswith(p)), None)
        if prefix is None or "properties" not in schema:
            continue
        root = next(p for p in Path(cache).glob(f"{ROOTS[prefix]}{version}*"))
        *path, kind = name.removeprefix(prefix).split(".")
        folder = root.joinpath(*path)
        order = [key for key in fields(kind, structs(folder)) if key in schema["properties"]]
        if order:
            found[name] = order
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(order)}" for name, order in sorted(found.items()))
    print("{\n" + rows + "\n}")


if __name__ == "__main__":
    main(*sys.argv[1:])
