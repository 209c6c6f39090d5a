"""Work that must be done before an object is deleted (upstream: controller-runtime/pkg/finalizer,
pkg/controller/controllerutil).
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.controller_runtime.client import Client

__all__ = ["Finalize", "FinalizerResult", "Finalizers"]

# Cleans up; raises to be called again.
Finalize = Callable[[Object], Awaitable[None]]


class FinalizerResult(Struct, frozen=True):
    """`updated`: finalizers were written. `gone`: nothing more is to be done for the object."""

    updated: bool
    gone: bool


class Finalizers:
    """Finalizers by name, such as `example.com/bucket`: put on objects, called when they are deleted, taken off when done."""

    def __init__(self) -> None:
        self._finalizers: dict[str, Finalize] = {}

    def register(self, name: str, finalize: Finalize) -> None:
        """ValueError: the name is taken, or none."""
        if name in self._finalizers:
            raise ValueError(f'finalizer for key "{name}" already registered')
        problems = names.is_qualified_name(name)
        if problems:
            raise ValueError(f'finalizer "{name}": {"; ".join(problems)}')
        self._finalizers[name] = finalize

    async def finalize(self, client: Client, obj: Object) -> FinalizerResult:
        """Brings the object's finalizers up to date, in `obj` and on the server.

        Finalizers that failed stay, and an ExceptionGroup has the reasons. Raises StatusError (409) if
        another client wrote in between.
        """
        metadata = obj["metadata"]
        before, failures = list(metadata.get("finalizers") or ()), []
        if "deletionTimestamp" not in metadata:
            after = before + [name for name in self._finalizers if name not in before]
            errors: list[Exception] = []
        else:
            after, errors = before, []
            for name, finalize in self._finalizers.items():
                if name in after:
                    try:
                        await finalize(obj)
                    except Exception as error:
                        errors.append(error)
                        failures.append(f'finalizer "{name}" failed: {error}')
                    else:
                        after = [other for other in after if other != name]
        if after != before:
            patch = {"metadata": {"finalizers": after, "resourceVersion": metadata["resourceVersion"]}}
            metadata["resourceVersion"] = (await client.patch(obj, patch))["metadata"]["resourceVersion"]
            metadata["finalizers"] = after
        if errors:
            raise ExceptionGroup("; ".join(failures), errors)
        return FinalizerResult(after != before, "deletionTimestamp" in metadata)
