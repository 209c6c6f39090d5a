"""Namespaces: born active with a finalizer of their own, ended in two steps.

Upstream: pkg/registry/core/namespace/{strategy.go,storage/storage.go}.
"""

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.registry.generic.deletion import FOREGROUND, ORPHAN, Deletion
from fakeapiserver.registry.generic.strategy import Cells, Strategy, copy_field
from fakeapiserver.registry.generic.table_cells import age

FINALIZER = "kubernetes"
_NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        """Every namespace carries its name as a label, so that selectors can find it."""
        meta = obj["metadata"]
        if meta.get("name"):
            meta["labels"] = {**(meta.get("labels") or {}), _NAME_LABEL: meta["name"]}
        if not (obj.get("status") or {}).get("phase"):
            obj["status"] = {**(obj.get("status") or {}), "phase": "Active"}

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Active"}
        spec = dict(obj.get("spec") or {})
        if FINALIZER not in spec.get("finalizers", ()):
            spec["finalizers"] = [*spec.get("finalizers", ()), FINALIZER]
        obj["spec"] = spec

    def validate(self, obj: Object) -> ErrorList:
        path = Path("spec").child("finalizers")
        return [error for name in obj["spec"]["finalizers"] for error in names.finalizer_name_errors(name, path)]

    def canonicalize(self, obj: Object) -> None:
        """Adds the label of the name, which a generated name doesn't have before."""
        self.default(obj, "v1")

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        """spec.finalizers belongs to the finalize subresource."""
        super().prepare_for_update(obj, old)
        obj["spec"] = dict(obj.get("spec") or {})
        copy_field("finalizers", old.get("spec") or {}, obj["spec"])

    def reset_paths(self, subresource: str) -> tuple[str, ...]:
        return self.status_reset_fields if subresource == "status" else ("status",)

    def prepare_for_subresource_update(self, subresource: str, obj: Object, old: Object) -> None:
        """The only other subresource that writes the whole object is finalize, which keeps the status."""
        if "status" in old:
            obj["status"] = old["status"]

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        phase, terminating = (obj.get("status") or {}).get("phase", ""), is_terminating(obj)
        expected_phase, what = ("Terminating", "not empty") if terminating else ("Active", "empty")
        if phase == expected_phase:
            return []
        json_phase = field.json_text(phase)
        return [
            field.invalid(
                "status.Phase", json_phase, f"may only be '{expected_phase}' if `deletionTimestamp` is {what}"
            )
        ]

    def validate_subresource_update(self, subresource: str, obj: Object, old: Object) -> ErrorList:
        errors: ErrorList = []
        for i, name in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
            errors += names.finalizer_name_errors(name, Path("spec").child("finalizers").index(i))
        return errors

    def deletion_blocked(self, obj: Object) -> bool:
        return bool((obj.get("spec") or {}).get("finalizers"))

    def begin_deletion(self, obj: Object, options: Deletion, now: float) -> None:
        """Unlike other kinds, without a grace period; the namespace controller and finalize do the rest."""
        meta = obj["metadata"]
        meta["deletionTimestamp"] = rfc3339(now)
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
        kept_finalizers = [name for name in meta.get("finalizers") or () if _keeps(name, options)]
        if options.orphan_dependents is False or options.propagation_policy == "Foreground":
            kept_finalizers += [FOREGROUND] if FOREGROUND not in kept_finalizers else []
        elif options.orphan_dependents or options.propagation_policy == "Orphan":
            kept_finalizers += [ORPHAN] if ORPHAN not in kept_finalizers else []
        meta["finalizers"] = kept_finalizers
        if not kept_finalizers:
            del meta["finalizers"]

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), (obj.get("status") or {}).get("phase", ""), age(obj, now)]


def _keeps(finalizer: str, options: Deletion) -> bool:
    """Reports whether a finalizer stays; the garbage collector's stay unless the client chooses another propagation policy."""
    if options.orphan_dependents is not None:
        return finalizer != (FOREGROUND if options.orphan_dependents else ORPHAN)
    if options.propagation_policy is None:
        return True
    return {ORPHAN: "Orphan", FOREGROUND: "Foreground"}.get(
        finalizer, options.propagation_policy
    ) == options.propagation_policy
