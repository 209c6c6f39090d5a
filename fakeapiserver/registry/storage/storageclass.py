"""Storage classes.

Upstream: pkg/registry/storage/storageclass/strategy.go, pkg/apis/storage/v1/defaults.go,
pkg/apis/storage/validation/validation.go.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import duplicate_errors, name_errors
from fakeapiserver.registry.core.node.label_warnings import DEPRECATED_NODE_LABELS
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age
from fakeapiserver.registry.storage.parameters import parameter_errors, provisioner_errors

_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_MARK: Final = " (default)"
# An answer has no room for more.
_MOST_ERRORS: Final = 200_000
_ABSENT = {"provisioner": ""}
_CHOICES: Final = {
    "reclaimPolicy": ("Delete", "Retain"),
    "volumeBindingMode": ("Immediate", "WaitForFirstConsumer"),
}


class StorageClassStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Object) -> ErrorList:
        errors = provisioner_errors(obj.get("provisioner", ""), Path("provisioner"))
        errors += parameter_errors(obj.get("parameters") or {}, Path("parameters"))
        for name, choices in _CHOICES.items():
            if obj[name] not in choices and (obj[name] or name != "reclaimPolicy"):
                errors.append(field.not_supported(name, obj[name], choices))
        return errors + _topology_errors(obj.get("allowedTopologies") or (), Path("allowedTopologies"))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors: ErrorList = []
        for name in ("parameters", "provisioner", *_CHOICES):
            new, before = obj.get(name, _ABSENT.get(name)), old.get(name, _ABSENT.get(name))
            if new != before and name != "volumeBindingMode" and not self.features.at_least("v1.36"):
                errors.append(field.forbidden(name, f"updates to {name} are forbidden."))
                continue
            errors += immutable_errors(dict(sorted(new.items())) if isinstance(new, dict) else new, before, Path(name))
        return errors

    def warnings_on_create(self, obj: Object) -> list[str]:
        warnings = []
        for i, topology in enumerate(obj.get("allowedTopologies") or ()):
            for j, expression in enumerate(topology.get("matchLabelExpressions") or ()):
                if text := DEPRECATED_NODE_LABELS.get(expression.get("key", "")):
                    at = Path("allowedTopologies").index(i).child("matchLabelExpressions").index(j).child("key")
                    warnings.append(f"{at}: {text}")
        return warnings

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        name = str(metadata(obj).get("name", ""))
        if not self.features.at_least("v1.37") and _is_default(obj):
            name += _MARK
        return [
            name,
            obj.get("provisioner", ""),
            obj.get("reclaimPolicy", "Delete"),
            obj.get("volumeBindingMode", "Immediate"),
            obj.get("allowVolumeExpansion", False),
            age(obj, now),
        ]

    def complete_rows(self, rows: list[Object], objects: Sequence[Object]) -> None:
        """Marks the class that claims get by default: from 1.37 on the newest class that says so, and in lists only."""
        defaults = [i for i, obj in enumerate(objects) if _is_default(obj)] if self.features.at_least("v1.37") else []
        if defaults:
            names_of = [metadata(obj).get("name", "") for obj in objects]
            newest = max(metadata(objects[i]).get("creationTimestamp", "") for i in defaults)
            chosen = [i for i in defaults if metadata(objects[i]).get("creationTimestamp", "") == newest]
            rows[min(chosen, key=lambda i: str(names_of[i]))]["cells"][0] += _MARK


def _is_default(obj: Object) -> bool:
    annotations = metadata(obj).get("annotations") or {}
    return any(annotations.get(key) == "true" for key in _DEFAULT)


def _topology_errors(terms: Sequence[Object], path: Path) -> ErrorList:
    """The errors in topologies: terms and labels in a term must be unique."""
    errors: ErrorList = []
    # Upstream compares with as many empty terms as there are terms, too.
    seen = Counter({frozenset[Any](): len(terms)})
    for i, term in enumerate(terms):
        at = path.index(i).child("matchLabelExpressions")
        values_of: dict[str, set[str]] = {}
        for j, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key, values = expression.get("key", ""), expression.get("values") or ()
            errors += _requirement_errors(key, values, at.index(j))
            if key in values_of:
                errors.append(field.duplicate(at.index(j).child("key"), key))
            values_of[key] = set(values)
        term_values = frozenset((key, frozenset(values)) for key, values in values_of.items())
        if len(errors) < _MOST_ERRORS:
            errors += [field.duplicate(at, "")] * seen[term_values]
        seen[term_values] += 1
    return errors


def _requirement_errors(key: str, values: Sequence[str], path: Path) -> ErrorList:
    at = path.child("values")
    errors: ErrorList = [] if values else [field.required(at)]
    seen: set[str] = set()
    for i, value in enumerate(values):
        errors += duplicate_errors(value, seen, at.index(i))
    return errors + name_errors(key, names.is_qualified_name, path.child("key"))
