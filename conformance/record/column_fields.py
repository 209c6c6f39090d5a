"""Finds out which field's description a real kube-apiserver shows for each column of its Tables.

`python -m conformance.record.column_fields --server URL --token TOKEN --out fakeapiserver/apis/column_fields.json`
Writes {"/api/v1/services": {"Type": "io.k8s.api.core.v1.ServiceSpec type"}}. Descriptions themselves are not recorded, and columns
whose text is no field's are left out.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from conformance.record.types import DISCOVERY, TABLE, V2, connect, listable

# At the end of a field's description; columns don't have it.
VALUES = "\n\nPossible enum values"


def fields_by_text(definitions: dict[str, Any]) -> dict[str, str]:
    """Description -> `DEFINITION FIELD`, the first in the order of their names."""
    found: dict[str, str] = {}
    for name, schema in sorted(definitions.items()):
        for field, value in schema.get("properties", {}).items():
            if text := value.get("description", "").partition(VALUES)[0].rstrip():
                found.setdefault(text, f"{name} {field}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--server", "--token", "--out"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    get = connect(options.server, options.token)
    known = fields_by_text(get(V2)["definitions"])
    documents = {path: get(path, DISCOVERY)["items"] for path in ("/api", "/apis")}
    found: dict[str, dict[str, str]] = {}
    for path, _ in listable(documents):
        columns = get(f"{path}?limit=1", TABLE)["columnDefinitions"]
        found[path] = {
            column["name"]: known[text]
            for column in columns
            if (text := column["description"].partition(VALUES)[0].rstrip()) in known
        }
    lines = ",\n".join(f"{json.dumps(path)}: {json.dumps(found[path])}" for path in sorted(found) if found[path])
    Path(options.out).write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
