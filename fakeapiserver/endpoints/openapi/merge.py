"""Merges another server's OpenAPI v2 document into this one's: its paths, and the definitions they need.

Upstream: k8s.io/kube-openapi/pkg/aggregator/{aggregator,walker}.go.

Descriptions don't make definitions and parameters differ: this server may be without them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

Document = dict[str, Any]

_GVK: Final = "x-kubernetes-group-version-kind"
_DEFINITION: Final = "#/definitions/"
_PARAMETER: Final = "#/parameters/"


def below(document: Mapping[str, Any], prefix: str) -> Document:
    """The paths that begin with `prefix`, with the definitions and parameters that they use."""
    return _keeping(document, [path for path in document.get("paths") or {} if path.startswith(prefix)])


def merged(document: Document, other: Mapping[str, Any]) -> Document:
    """`document` with the paths of `other` that it doesn't have. Definitions of one name that differ get another name."""
    missing = [path for path in other.get("paths") or {} if path not in document["paths"]]
    source = _keeping(other, missing)
    definitions, parameters = dict(document.get("definitions") or {}), dict(document.get("parameters") or {})
    renamed = _renames(definitions, source["definitions"], _DEFINITION)
    renamed |= _renames(parameters, source["parameters"], _PARAMETER)
    for name, definition in source["definitions"].items():
        new = renamed.get(_DEFINITION + name, _DEFINITION + name).removeprefix(_DEFINITION)
        definitions[new] = (
            _with_kinds(definitions[new], definition) if new in definitions else _referring(definition, renamed)
        )
    for name, definition in source["parameters"].items():
        new = renamed.get(_PARAMETER + name, _PARAMETER + name).removeprefix(_PARAMETER)
        parameters.setdefault(new, _referring(definition, renamed))
    return {
        **document,
        "paths": {**document["paths"], **{path: _referring(source["paths"][path], renamed) for path in missing}},
        "definitions": dict(sorted(definitions.items())),
        "parameters": dict(sorted(parameters.items())),
    }


def _keeping(document: Mapping[str, Any], paths: Iterable[str]) -> Document:
    kept = {path: document["paths"][path] for path in paths}
    definitions, parameters = document.get("definitions") or {}, document.get("parameters") or {}
    needed: set[str] = set()
    waiting = list(_references(kept))
    while waiting:
        reference = waiting.pop()
        if reference in needed:
            continue
        needed.add(reference)
        definition = definitions.get(reference.removeprefix(_DEFINITION)) or parameters.get(
            reference.removeprefix(_PARAMETER)
        )
        waiting.extend(_references(definition))
    return {
        "paths": kept,
        "definitions": {name: definition for name, definition in definitions.items() if _DEFINITION + name in needed},
        "parameters": {name: definition for name, definition in parameters.items() if _PARAMETER + name in needed},
    }


def _references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [inner for item in value for inner in _references(item)]
    if not isinstance(value, dict):
        return []
    target = value.get("$ref")
    own = [target] if isinstance(target, str) else []
    return own + [inner for item in value.values() if isinstance(item, dict | list) for inner in _references(item)]


def _renames(known: Mapping[str, Any], added: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """New references by old ones, for what differs from what has its name already."""
    renamed, taken = {}, set(known)
    for name, definition in added.items():
        if name not in known or _without_prose(known[name]) == _without_prose(definition):
            continue
        number, new = 2, f"{name}_v2"
        while not (new in known and _without_prose(known[new]) == _without_prose(definition)) and (
            new in taken or new in added
        ):
            number += 1
            new = f"{name}_v{number}"
        renamed[prefix + name] = prefix + new
        taken.add(new)
    return renamed


def _referring(value: Any, renamed: Mapping[str, str]) -> Any:
    """The same with references to what has another name now."""
    if not renamed:
        return value
    if isinstance(value, list):
        return [_referring(item, renamed) for item in value]
    if isinstance(value, dict):
        return {
            key: renamed.get(item, item) if key == "$ref" and isinstance(item, str) else _referring(item, renamed)
            for key, item in value.items()
        }
    return value


def _without_prose(value: Any) -> Any:
    """Returns the part of a definition that decides whether two are equal."""
    if isinstance(value, list):
        return [_without_prose(item) for item in value]
    if isinstance(value, dict):
        ignored = ("description", _GVK) if not isinstance(value.get("description"), dict) else (_GVK,)
        return {key: _without_prose(item) for key, item in value.items() if key not in ignored}
    return value


def _with_kinds(known: Document, definition: Document) -> Document:
    """Both servers' group versions of a kind that they share, such as DeleteOptions."""
    if not definition.get(_GVK):
        return known
    kinds = list(known.get(_GVK) or [])
    kinds += [kind for kind in definition[_GVK] if kind not in kinds]
    return {**known, _GVK: sorted(kinds, key=lambda kind: (kind["group"], kind["version"], kind["kind"]))}
