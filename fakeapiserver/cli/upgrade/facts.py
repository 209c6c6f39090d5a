"""The facts that changed between two minor versions, from the tables recorded of real servers: resources, fields, defaults, gates.

Prose isn't compared: descriptions of fields are no part of the tables.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apis.recorded import read_table, release_of

_REF: Final = "#/components/schemas/"
_PREFIXES: Final = ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.kube-aggregator.pkg.apis.",
    "io.k8s.apiextensions-apiserver.pkg.apis.")  # fmt: skip

Schema = Mapping[str, Any]


class Gate(Struct, frozen=True):
    """A feature gate whose state differs: `beta, on`, `GA, on, locked`, or "" if a version doesn't have it."""

    name: str
    old: str
    new: str


class Change(Struct, frozen=True):
    """A value that differs. `place` is a field such as `apps/v1 DeploymentSpec.replicas`, or a resource; "" is no value."""

    place: str
    old: str
    new: str


class Facts(Struct, frozen=True):
    """The differences between two minor versions.

    - `old`, `new`: the releases that the tables are of, such as v1.36.3.
    - `added`, `removed`: resources with their version, such as `jobs.batch v1`.
    - `deprecated`: resources that are deprecated in the new version only, with the warning.
    - `fields`: fields of both versions' types; new ones with their type in `new`, removed ones in `old`, and changed types.
    - `defaults`: defaults of fields that the schemas name.
    - `gates`: feature gates.
    """

    old: str
    new: str
    added: list[str]
    removed: list[str]
    deprecated: list[Change]
    fields: list[Change]
    defaults: list[Change]
    gates: list[Gate]


def between(old: str, new: str) -> Facts:
    """The differences of `new`, such as `v1.36`, from `old`. Versions must be known (see `minor_version`)."""
    before, after = _resources(old), _resources(new)
    fields = _fields(old), _fields(new)
    shapes, defaults = ([{place: each[part] for place, each in found.items()} for found in fields] for part in (0, 1))
    both = fields[0].keys() & fields[1].keys()
    types = set.intersection(*({place.rpartition(".")[0] for place in found} for found in fields))
    return Facts(
        release_of(old),
        release_of(new),
        sorted(after.keys() - before.keys()),
        sorted(before.keys() - after.keys()),
        [
            Change(name, "", after[name])
            for name in sorted(before.keys() & after.keys())
            if after[name] and not before[name]
        ],
        # Of a type that is new as a whole, the field that leads to it is enough.
        [change for change in _changes(*shapes) if change.place.rpartition(".")[0] in types],
        [change for change in _changes(*defaults) if change.place in both],
        _gates(old, new),
    )


def _resources(version: str) -> dict[str, str]:
    """The warning of deprecation of each resource, "" without one."""
    found: dict[str, str] = {}
    for groups in read_table(version, "discovery.json").values():
        for group in groups:
            name = group["metadata"].get("name", "")
            for served in group["versions"]:
                for resource in served["resources"]:
                    title = f"{resource['resource']}{f'.{name}' if name else ''} {served['version']}"
                    found[title] = resource.get("deprecation", "")
    return found


def _fields(version: str) -> dict[str, tuple[str, str]]:
    """The type and the default of each field, by its place."""
    found: dict[str, tuple[str, str]] = {}
    for name, definition in read_table(version, "schemas.json").items():
        for field, schema in definition.get("properties", {}).items():
            default = schema.get("default")
            # Zero values are those of Go's types anyway.
            shown = "" if default in (None, "", 0, False, {}, []) else str(default)
            found[f"{_title(name)}.{field}"] = _type(schema), shown
    return found


def _type(schema: Schema) -> str:
    """`[]Container`, `map[string]Quantity`, `integer (int32)`"""
    for part in (schema, *schema.get("allOf", ())):
        if "$ref" in part:
            return _title(part["$ref"].removeprefix(_REF)).rpartition(" ")[2]
    kind = schema.get("type", "any")
    if kind == "array":
        return f"[]{_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map[string]{_type(schema['additionalProperties'])}"
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def _title(definition: str) -> str:
    """`io.k8s.api.apps.v1.DeploymentSpec` -> `apps/v1 DeploymentSpec`"""
    for prefix in _PREFIXES:
        if definition.startswith(prefix):
            group, _, rest = definition.removeprefix(prefix).partition(".")
            version, _, kind = rest.rpartition(".")
            return f"{group}/{version} {kind}" if group != "core" else f"{version} {kind}"
    return definition


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[Change]:
    rows = (Change(place, old.get(place, ""), new.get(place, "")) for place in sorted(old.keys() | new.keys()))
    return [row for row in rows if row.old != row.new]


def _gates(old: str, new: str) -> list[Gate]:
    before, after = (read_table(version, "feature_gates.json") for version in (old, new))
    states = (
        (name, _state(before.get(name)), _state(after.get(name))) for name in sorted(before.keys() | after.keys())
    )
    return [Gate(*state) for state in states if state[1] != state[2]]


def _state(gate: Schema | None) -> str:
    if gate is None:
        return ""
    stage = gate["stage"] if gate["stage"] == "GA" else gate["stage"].lower()
    return ", ".join((stage, "on" if gate["default"] else "off", *(["locked"] if gate.get("locked") else [])))


def lines(facts: Facts) -> Iterator[str]:
    """Yields the facts as text: `+` is new, `-` is gone, `~` has changed."""
    yield f"Kubernetes {facts.old} -> {facts.new}"
    parts = {
        "Resources": [f"+ {name}" for name in facts.added]
        + [f"- {name}" for name in facts.removed]
        + [f"~ {change.place}: {change.new}" for change in facts.deprecated],
        "Fields": [_line(change) for change in facts.fields],
        "Defaults": [_line(change) for change in facts.defaults],
        "Feature gates": [_line(Change(gate.name, gate.old, gate.new)) for gate in facts.gates],
    }
    for title, rows in parts.items():
        yield ""
        yield f"{title}:" if rows else f"{title}: no difference"
        yield from (f"  {row}" for row in rows)


def _line(change: Change) -> str:
    if not change.old:
        return f"+ {change.place} ({change.new})"
    return f"~ {change.place} ({change.old} -> {change.new})" if change.new else f"- {change.place} ({change.old})"
