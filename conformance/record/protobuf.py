"""Records the protobuf field numbers of built-in kinds from the public generated.proto and types.go of the Go modules.

    python -m conformance.record.protobuf --modules DIR [DIR ...] --out fakeapiserver/apis/versions/v1.36

DIR are the folders of k8s.io/api, k8s.io/apimachinery, k8s.io/apiextensions-apiserver and k8s.io/kube-aggregator as
`go list -m -f {{.Dir}} MODULE` prints them; --out has schemas.json, whose packages are wanted. One message a line: field number ->
[JSON name, type, label]. The label is `repeated`, `map`, `optional` (what may be nil in Go, and is written when it isn't) or empty:
always written, zero or not. An empty JSON name marks a struct whose fields JSON shows inline.
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
_GO_FIELD = re.compile(r'^\t(?:\w+\s+)?(\S+)\s+`json:"([^",]*)(,inline)?[^"]*"[^`]*protobuf:"\w+,(\d+),', re.MULTILINE)
_SLICE = re.compile(r"^type (\w+) \[\]", re.MULTILINE)
# What no schema is about.
_ALWAYS = {"k8s.io.api.admission.v1", "k8s.io.api.apidiscovery.v2"}
_SCALARS = frozenset(("string", "bytes", "bool", "int32", "int64", "uint32", "uint64", "double", "float"))

Fields = dict[str, list[str]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    packages = {_package_of(name) for name in json.loads((arguments.out / "schemas.json").read_text())} | _ALWAYS
    messages: dict[str, Fields] = {}
    for module in arguments.modules:
        for path in sorted(module.rglob("generated.proto")):
            messages.update(messages_of(path, packages))
    rows = [f" {json.dumps(name)}: {json.dumps(messages[name])}" for name in sorted(messages)]
    (arguments.out / "protobuf.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")
    print(f"{arguments.out}: {len(messages)} messages", file=sys.stderr)
    return 0


def _package_of(definition: str) -> str:
    """io.k8s.api.core.v1.Pod -> k8s.io.api.core.v1."""
    return "k8s.io." + definition.removeprefix("io.k8s.").rpartition(".")[0].replace("-", "_")


def messages_of(path: Path, packages: set[str]) -> dict[str, Fields]:
    """The messages of one package, by full name."""
    text = path.read_text()
    package = _PACKAGE.search(text)
    assert package is not None, path
    if package[1] not in packages:
        return {}
    structs = go_structs(path.parent)
    return {
        f"{package[1]}.{name}": fields_of(body, package[1], structs.get(name, {}))
        for name, body in _MESSAGE.findall(text)
    }


def fields_of(body: str, package: str, go_fields: dict[str, tuple[str, str]]) -> Fields:
    fields: Fields = {}
    for label, value_type, field_type, name, number in _FIELD.findall(body):
        kind = full_name(value_type or field_type, package)
        json_name, optional = go_fields.get(number, (name, ""))
        fields[number] = [json_name, kind, "map" if value_type else label if label == "repeated" else optional]
    return fields


def full_name(kind: str, package: str) -> str:
    if kind in _SCALARS:
        return kind
    return kind.lstrip(".") if "." in kind else f"{package}.{kind}"


def go_structs(folder: Path) -> dict[str, dict[str, tuple[str, str]]]:
    """struct -> field number -> JSON name (empty for inline), and `optional` for what may be nil."""
    sources = [path.read_text() for path in folder.glob("*.go") if path.name != "generated.pb.go"]
    slices = {"[]byte", *(name for source in sources for name in _SLICE.findall(source))}
    return {
        struct: {
            number: ("" if inline else json_name, "optional" if kind[0] == "*" or kind in slices else "")
            for kind, json_name, inline, number in _GO_FIELD.findall(body)
        }
        for source in sources
        for struct, body in _STRUCT.findall(source)
    }


if __name__ == "__main__":
    sys.exit(main())
