"""Warnings about jobs that are accepted.

Upstream: pkg/api/job/warnings.go.
"""

from typing import Final

from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.pod.warnings import pod_template_warnings

_MANY_COMPLETIONS: Final = 100_000
_MUCH_PARALLELISM: Final = 10_000
_TOO_MANY: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not "
    "be able to track completedIndexes when a big number of indexes fail"
)


def job_spec_warnings(spec: Object, path: Path) -> list[str]:
    """Warnings about a JobSpec at `path`."""
    many = spec.get("completions", 0) > _MANY_COMPLETIONS and spec.get("parallelism", 0) > _MUCH_PARALLELISM
    warnings = [f"{path}: {_TOO_MANY}"] if many and spec.get("completionMode") == "Indexed" else []
    return warnings + pod_template_warnings(spec["template"], path.child("template"))
