"""Records the protobuf field numbers of OpenAPI documents from gnostic-models' public .proto files.

    python -m conformance.record.openapi_protobuf --module DIR --out fakeapiserver/apis/openapi_messages.json

DIR is the folder of github.com/google/gnostic-models as `go list -m -f {{.Dir}} MODULE` prints it. `v2` and `v3` hold one message a
line: name -> [[number, name in the .proto file, type, label]], in the order of numbers. The label is `repeated`, `oneof` or empty.
"""

import argparse
import json
import re
import sys
from pathlib import Path

_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^( +)(repeated )?([\w.]+) (\w+) = (\d+);", re.MULTILINE)

Row = tuple[int, str, str, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    blocks = []
    for version in ("v2", "v3"):
        text = (arguments.module / f"openapi{version}" / f"OpenAPI{version}.proto").read_text()
        rows = [f"  {json.dumps(name)}: {json.dumps(fields_of(body))}" for name, body in sorted(_MESSAGE.findall(text))]
        blocks.append(f' "{version}": {{\n' + ",\n".join(rows) + "\n }")
        print(f"{version}: {len(rows)} messages", file=sys.stderr)
    arguments.out.write_text("{\n" + ",\n".join(blocks) + "\n}\n")
    return 0


def fields_of(body: str) -> list[Row]:
    """Fields of one message; those of a oneof stand deeper than the others."""
    rows = [
        (int(number), name, kind, "repeated" if repeated else "oneof" if len(indent) > 2 else "")
        for indent, repeated, kind, name, number in _FIELD.findall(body)
    ]
    return sorted(rows)


if __name__ == "__main__":
    sys.exit(main())
