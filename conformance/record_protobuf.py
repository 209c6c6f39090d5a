"""Records the protobuf field numbers of built-in kinds from the public generated.proto and types.go of the Go modules.

    python -m conformance.record_protobuf --modules DIR [DIR ...] --out fakeapiserver/apis/versions/v1.36/protobuf.json

DIR are the folders of k8s.io/api, k8s.io/apimachinery, k8s.io/apiextensions-apiserver and k8s.io/kube-aggregator as
`go list -m -f {{.Dir}} MODULE` prints them. One message a line: field number -> [JSON name, type, label]. The label is `repeated`,
`map` or empty; an empty JSON name marks a struct whose fields JSON shows inline.
"""

import argparse
import json
import re
import sys
from pathlib import Path

_PACKAGE = re.compile(r"^package ([\w.]+);", re.MULTILINE)
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (optional|repeated|map<string, *([\w.]+)>) ?([\w.]*) (\w+) = (\d+);", re.MULTILINE)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r'(\w+) +`json:"([^",]*)(,inline)?[^"]*"[^`]*protobuf:"[^"]*?(?:name=(\w+)[^"]*)?"')
# Versions that are not served by default.
_UNSTABLE = re.compile(r"\.v\d+(alpha|beta)\d+$|testapigroup")
_SCALARS = frozenset(("string", "bytes", "bool", "int32", "int64", "uint32", "uint64", "double", "float"))

Fields = dict[str, list[str]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    messages: dict[str, Fields] = {}
    for module in arguments.modules:
        for path in sorted(module.rglob("generated.proto")):
            messages.update(messages_of(path))
    rows = [f" {json.dumps(name)}: {json.dumps(messages[name])}" for name in sorted(messages)]
    arguments.out.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    print(f"{arguments.out}: {len(messages)} messages", file=sys.stderr)
    return 0


def messages_of(path: Path) -> dict[str, Fields]:
    """The messages of one package, by full name."""
    text = path.read_text()
    package = _PACKAGE.search(text)
    assert package is not None, path
    if _UNSTABLE.search(package[1]):
        return {}
    names = json_names(path.parent)
    return {
        f"{package[1]}.{name}": fields_of(body, package[1], names.get(name, {}))
        for name, body in _MESSAGE.findall(text)
    }


def fields_of(body: str, package: str, names: dict[str, str]) -> Fields:
    fields: Fields = {}
    for label, value_type, field_type, name, number in _FIELD.findall(body):
        kind = full_name(value_type or field_type, package)
        short = "map" if value_type else label if label == "repeated" else ""
        fields[number] = [names.get(name, name), kind, short]
    return fields


def full_name(kind: str, package: str) -> str:
    if kind in _SCALARS:
        return kind
    return kind.lstrip(".") if "." in kind else f"{package}.{kind}"


def json_names(folder: Path) -> dict[str, dict[str, str]]:
    """struct -> protobuf name -> JSON name (empty for inline), where the two differ."""
    found: dict[str, dict[str, str]] = {}
    for path in folder.glob("*.go"):
        for struct, body in _STRUCT.findall(path.read_text()):
            for embedded, json_name, inline, tagged in _TAG.findall(body):
                # EphemeralContainerCommon's tag has no name: the generator then takes the type's.
                name = tagged or embedded[:1].lower() + embedded[1:]
                if not (tagged or inline):
                    continue
                if inline or json_name != name:
                    found.setdefault(struct, {})[name] = "" if inline else json_name
    return found


if __name__ == "__main__":
    sys.exit(main())
