"""Field ownership: structured merge, server-side apply, managedFields.

Upstream: k8s.io/apimachinery/pkg/util/managedfields, sigs.k8s.io/structured-merge-diff/v6.
"""

from fakeapiserver.apimachinery.managedfields.manager import (
    apply,
    keep_times_if_unchanged,
    same_content,
    update,
    with_owners_of,
)
from fakeapiserver.apimachinery.managedfields.operation import Operation

__all__ = ["Operation", "apply", "keep_times_if_unchanged", "same_content", "update", "with_owners_of"]
