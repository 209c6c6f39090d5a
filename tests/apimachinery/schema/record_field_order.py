"""Records the order of Go's struct fields where protobuf's field numbers don't tell it.

    python record_field_order.py DEFINITIONS.json "$(go env GOMODCACHE)" > fakeapiserver/apimachinery/schema/field_order.json

Reads upstream's sources, as record_go_types.py does. One line per definition: its JSON names in the order Go writes them.
"""

import json
import sys
from pathlib import Path

from record_go_types import ROOTS, fields, structs

from fakeapiserver.apis.protobuf import messages


def main(definitions_file: str, cache: str) -> None:
    definitions = json.loads(Path(definitions_file).read_text())
    found: dict[str, list[str]] = {}
    for name, schema in definitions.items():
        prefix = next((p for p in ROOTS if name.startswith(p)), None)
        if prefix is None or "properties" not in schema:
            continue
        root = next(p for p in Path(cache).glob(ROOTS[prefix] + "v0.36*"))
        *path, kind = name.removeprefix(prefix).split(".")
        folder = root.joinpath(*path)
        order = [key for key in fields(kind, structs(folder), "") if key in schema["properties"]]
        message = messages().get("k8s.io." + name.removeprefix("io.k8s.").replace("-", "_"), {})
        numbered = [message[number][0] for number in sorted(message)]
        plain = [key for key in order if key not in ("kind", "apiVersion") or key in numbered]
        if plain != [key for key in numbered if key in plain]:
            found[name] = plain
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(order)}" for name, order in sorted(found.items()))
    print("{\n" + rows + "\n}")


if __name__ == "__main__":
    main(*sys.argv[1:])
