"""Records what Go's types know and OpenAPI does not: pointers, omitempty, named types, embedded structs.

    python record_go_types.py fakeapiserver/apis/versions/v1.36/schemas.json "$(go env GOMODCACHE)" v0.36 > go_types.json

The newest version's go_types.json belongs into fakeapiserver/apimachinery/schema, an older one's beside its schemas.
Reads upstream's sources (k8s.io/api, apimachinery, apiextensions-apiserver, kube-aggregator). One line per definition:
{field: "[*]TYPE[!][~][ @Embedded]"}: `*` pointer, `!` without omitempty, `~` omitzero, `@` the embedded struct it comes from.
Fields as OpenAPI alone lets one expect them are left out.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path

from fakeapiserver.apimachinery.schema.go_types import expected_go_type

ROOTS = {
    "io.k8s.api.": "k8s.io/api@",
    "io.k8s.apimachinery.": "k8s.io/apimachinery@",
    "io.k8s.apiextensions-apiserver.": "k8s.io/apiextensions-apiserver@",
    "io.k8s.kube-aggregator.": "k8s.io/kube-aggregator@",
}
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
FIELD = re.compile(r"^\t(?:(\w+)\s+)?([^\s`/]+)\s+`([^`]*)`", re.M)
ALIAS = re.compile(r"^type (\w+) = (v\w+)\.(\w+)$", re.M)
IMPORTED = re.compile(r"\b\w*?(v\d+(?:(?:alpha|beta)\d+)?)\.")


Structs = dict[str, tuple[str, str]]


@cache
def structs(folder: Path) -> Structs:
    """Struct name -> its body and the package it is in, of every Go file of a package; with what stands for another version's."""
    texts = [file.read_text() for file in sorted(folder.glob("*.go"))]
    found = {m[1]: (m[2], folder.name) for text in texts for m in STRUCT.finditer(text)}
    for text in texts:
        for alias in ALIAS.finditer(text):
            if (other := structs(folder.parent / alias[2]).get(alias[3])) is not None:
                found[alias[1]] = other
    return found


def qualify(go: str, package: str) -> str:
    """A type expression as reflect prints it: local names get their package, aliases become package names."""
    go = IMPORTED.sub(r"\1.", go)
    local = re.compile(r"(?<![\w.])([A-Z]\w*)(?![\w.]*\.)")
    return local.sub(lambda m: f"{package}.{m[1]}", go).replace("[]byte", "[]uint8")


def fields(name: str, package_structs: Structs) -> dict[str, str]:
    """JSON name -> marks and type, embedded structs flattened."""
    found: dict[str, str] = {}
    body, package = package_structs.get(name, ("", ""))
    for go_name, go, tag in FIELD.findall(body):
        json_tag = re.search(r'json:"([^"]*)"', tag)
        if not json_tag or json_tag[1] == "-":
            continue
        json_name, *options = json_tag[1].split(",")
        if not json_name and (not go_name or "inline" in options):
            if "." not in go:
                inner = fields(go, package_structs)
                outer = go_name or go
                found |= {k: v.replace("@", f"@{outer}.") if "@" in v else f"{v} @{outer}" for k, v in inner.items()}
            continue
        marks = ("" if "omitempty" in options else "!") + ("~" if "omitzero" in options else "")
        found[json_name or go_name] = qualify(go, package) + marks
    return found


def main(definitions_file: str, cache: str, version: str) -> None:
    definitions = json.loads(Path(definitions_file).read_text())
    table: dict[str, dict[str, str]] = {}
    for name, schema in sorted(definitions.items()):
        prefix = next((p for p in ROOTS if name.startswith(p)), None)
        if prefix is None:
            continue
        root = next(p for p in Path(cache).glob(f"{ROOTS[prefix]}{version}*"))
        *path, kind = name.removeprefix(prefix).split(".")
        folder = root.joinpath(*path)
        found = structs(folder)
        required = schema.get("required", ())
        recorded = {
            k: go
            for k, go in fields(kind, found).items()
            if k in schema.get("properties", {}) and go != expected_go_type(schema["properties"][k], k in required)
        }
        if recorded:
            table[name] = recorded
    print("{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in table.items()) + "}")


if __name__ == "__main__":
    main(*sys.argv[1:])
