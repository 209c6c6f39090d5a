"""Records how Kubernetes' internal pod types are laid out, which some messages print: their fields in Go's order, and from what of
the wire form each comes.

    python -m conformance.record.internal_types --kubernetes DIR --api DIR [--go-types] OUTPUT

DIR are the sources of k8s.io/kubernetes and k8s.io/api (v1 knows the names on the wire). A row is [Go name, wire name, type]; with
--go-types, for 1.33, whose messages show it, the type as Go prints it comes last. A type is "string", "number", "bool", "null"
(pointers to scalars, times), "map", "wire" (as on the wire), "quantities", "quantity", "port" (IntOrString), or the name of another
row list after "[]", "*" or nothing.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Final

# (group, its version on the wire) -> the types that messages show
_ROOTS: Final = {
    ("core", "v1"): (
        "PodTemplateSpec",
        "PersistentVolumeClaimSpec",
        "PersistentVolumeSpec",
        "PersistentVolumeSource",
        "ScopeSelector",
        "ServicePort",
    ),
    ("authorization", "v1"): ("NonResourceAttributes",),
    ("networking", "v1"): ("ParentReference", "ServiceCIDRSpec"),
    ("rbac", "v1"): ("RoleRef",),
    ("flowcontrol", "v1"): ("FlowSchemaSpec", "PriorityLevelConfigurationSpec"),
    ("resource", "v1"): ("ResourceClaimSpec", "ResourceClaimTemplateSpec", "AllocationResult", "DeviceAttribute"),
    ("resource", "v1alpha3"): ("ResourcePoolStatusRequestStatus",),
    ("certificates", "v1beta1"): ("PodCertificateRequestSpec",),
    ("lifecycle", "v1alpha1"): ("ResponderStatus", "TargetResponder"),
    ("scheduling", "v1alpha3"): ("CompositePodGroupTemplate",),
}
_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_ALIAS: Final = re.compile(r"^type (\w+) ([\w\[\].]+)$", re.MULTILINE)
_FIELD: Final = re.compile(r'^\t(?:(\w+)\s+)?([*\[\]\w.]+)(?:\s+`json:"([^"`]*)"[^`]*`)?(?:\s*//.*)?$')
# A type of the package itself.
_LOCAL: Final = re.compile(r"(?<![\w.])[A-Z]\w*(?!\w*\.)")
_BASIC: Final = {"string": "string", "bool": "bool", "int": "number", "int32": "number", "int64": "number"}
_KNOWN: Final = {"resource.Quantity": "quantity", "intstr.IntOrString": "port", "ResourceList": "quantities"}

Field = tuple[str, str, str]


class Package:
    """The structs and other named types of one package."""

    def __init__(self, source: str) -> None:
        self.structs = {name: list(_fields(body)) for name, body in _STRUCT.findall(source)}
        self.aliases = dict(_ALIAS.findall(source))

    def flat(self, name: str) -> list[Field]:
        """(name, type, json tag) with embedded structs' fields in their place."""
        found: list[Field] = []
        for field, kind, tag in self.structs[name]:
            if field or kind not in self.structs:
                found.append((field, kind, tag))
            else:
                found += self.flat(kind)
        return found


def _fields(body: str) -> list[Field]:
    matches = (_FIELD.match(line) for line in body.splitlines())
    return [(match[1] or "", match[2], match[3] or "") for match in matches if match]


def rows(internal: Package, wire: Package, name: str, package: str = "") -> list[list[str]]:
    """A struct's rows. Fields that the wire form has elsewhere get their own name in lower case. With a `package`, Go's name of
    the one that it is in, they have Go's types."""
    names = {field: tag.partition(",")[0] for field, _, tag in wire.flat(name)} if name in wire.structs else {}
    found = []
    for field, kind, _ in internal.flat(name):
        if not field:
            found.append(["", "metadata", "wire", *(["v1.ObjectMeta"] if package else [])])
            continue
        go_type = [_LOCAL.sub(lambda match: f"{package}.{match[0]}", kind).replace("metav1.", "v1.")] if package else []
        found.append([field, names.get(field) or field[0].lower() + field[1:], kind_of(internal, kind), *go_type])
    return found


def kind_of(package: Package, kind: str) -> str:
    prefix = "[]" if kind.startswith("[]") else "*" if kind.startswith("*") else ""
    bare = kind.removeprefix(prefix)
    if bare in _KNOWN:
        return "null" if prefix else _KNOWN[bare]
    if bare in package.structs or bare.startswith("core."):
        return prefix + bare.removeprefix("core.")
    if prefix or bare.startswith("metav1."):
        return "wire" if prefix and bare.startswith("metav1.") else "null"
    if bare.startswith("map["):
        return "map"
    basic = _BASIC.get(bare) or _BASIC.get(package.aliases.get(bare, ""))
    return basic or ("string" if bare == "types.UID" else "null")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", type=Path, required=True)
    parser.add_argument("--api", type=Path, required=True)
    parser.add_argument("--go-types", action="store_true")
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    found: dict[str, list[list[str]]] = {}
    for (group, version), roots in _ROOTS.items():
        sources = (arguments.kubernetes / f"pkg/apis/{group}/types.go", arguments.api / f"{group}/{version}/types.go")
        if not all(source.exists() for source in sources):
            continue  # a later version's group
        internal, wire = (Package(source.read_text()) for source in sources)
        wanted = [root for root in roots if root in internal.structs]
        while wanted:
            name = wanted.pop()
            if name not in found:
                found[name] = rows(internal, wire, name, group if arguments.go_types else "")
                wanted += [kind for row in found[name] if (kind := row[2].lstrip("[]*")) in internal.structs]
    lines = (f' "{name}": {json.dumps(found[name])}' for name in sorted(found))
    arguments.output.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
