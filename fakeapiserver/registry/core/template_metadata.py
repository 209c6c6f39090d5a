"""Metadata of templates that claims are made of: volumes' and devices'.

Upstream: ValidateTemplateObjectMeta in pkg/apis/core/validation/validation.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object

# What it may not have, in the order of Go's type, whose names are shown with their first letter in lower case.
_FORBIDDEN: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields"),
)


def template_meta_errors(meta: Object, path: Path) -> ErrorList:
    """The errors for metadata other than labels and annotations, which is all that claims get."""
    errors = names.validate_annotations(meta.get("annotations") or {}, path.child("annotations"))
    errors += names.validate_labels(meta.get("labels") or {}, path.child("labels"))
    return errors + [
        field.forbidden(path.child("uID" if name == "uid" else name), "cannot be set")
        for name in _FORBIDDEN
        if meta.get(name) not in (None, "") and (name, meta[name]) != ("generation", 0)  # an empty list is one
    ]
