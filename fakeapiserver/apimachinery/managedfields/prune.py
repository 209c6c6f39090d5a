"""Removal of fields that an applier no longer applies and no other manager owns.

Upstream: sigs.k8s.io/structured-merge-diff/v6/merge/update.go (prune, addBackOwnedItems, addBackDanglingItems).
"""

from fakeapiserver.apimachinery.managedfields.compare import to_fieldset
from fakeapiserver.apimachinery.managedfields.entries import Managed, ManagerId, Owned
from fakeapiserver.apimachinery.managedfields.fieldset import FieldSet, difference, intersection, union
from fakeapiserver.apimachinery.managedfields.merge import remove
from fakeapiserver.apimachinery.managedfields.ownership import Versions
from fakeapiserver.apimachinery.managedfields.schema_change import with_named_fields
from fakeapiserver.apimachinery.meta import Object


def prune(merged: Object, managed: Managed, applier: ManagerId, last: Owned | None, versions: Versions) -> Object:
    """The merged object without what the applier owned by its last apply, except for what anyone owns now or it never owned."""
    if last is None or not last.fields:
        return merged
    version = last.api_version
    schema = versions.schema_of(version)
    is_one_version = all(owned.api_version == version for owned in managed.values())  # else conversions may change it
    if is_one_version and not difference(last.fields, managed[applier].fields):
        return merged
    try:
        failure = "failed to prune fields: failed to convert merged object to last applied version: "
        converted = versions.convert(merged, version, failure=failure)
    except LookupError:
        return merged
    owned = with_named_fields(schema.root, last.fields)
    pruned = remove(schema.root, converted, owned) or {}
    pruned = _add_back_owned(converted, pruned, version, managed, versions)
    kept = with_named_fields(schema.root, to_fieldset(pruned, schema))
    all_fields = with_named_fields(schema.root, to_fieldset(converted, schema))
    gone = intersection(difference(all_fields, kept), owned)
    result: Object = remove(schema.root, converted, gone) or {}
    back: Object = versions.convert(result, managed[applier].api_version, version, failure="failed to prune fields: ")
    return back


def _add_back_owned(merged: Object, pruned: Object, version: str, managed: Managed, versions: Versions) -> Object:
    """Adds what any manager owns back, the version of the last apply first."""
    by_version: dict[str, FieldSet] = {}
    for owned in managed.values():
        by_version[owned.api_version] = union(by_version.get(owned.api_version, {}), owned.fields)
    at = version
    for target in sorted(by_version, key=lambda v: v != version):
        try:
            failure = "failed to prune fields: failed add back owned items: failed to convert {} object at version {}: "
            merged = versions.convert(merged, target, at, failure=failure.format("merged", target))
            pruned = versions.convert(pruned, target, at, failure=failure.format("pruned", target))
        except LookupError:
            continue
        at = target
        root = versions.schema_of(target).root
        schema = versions.schema_of(target)
        everything = with_named_fields(root, to_fieldset(merged, schema))
        kept = union(with_named_fields(root, to_fieldset(pruned, schema)), with_named_fields(root, by_version[target]))
        pruned = remove(root, merged, difference(everything, kept)) or {}
    failure = "failed to prune fields: failed add back dangling items: failed to convert pruned object to last applied version: "
    back: Object = versions.convert(pruned, version, at, failure=failure)
    return back
