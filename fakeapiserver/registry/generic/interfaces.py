"""The interfaces of the generic store to admission and the name generator, and the errors of objects that can't be read."""

import math
from collections.abc import Callable, Mapping
from typing import Protocol

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import Status, StatusError, new_too_many_requests, status_error
from fakeapiserver.apimachinery.gvk import GroupResource

# generateName -> a name with a random suffix.
NameGenerator = Callable[[str], str]


class NotConverted(StatusError):
    """A stored object can't be converted to the requested version. `revision` is the object's.

    Upstream lists and watches from a cache, which such an object may keep from filling; `unready` is the error of such a cache."""

    def __init__(self, why: str, revision: int, status: Status | None = None) -> None:
        super().__init__(status or status_error(500, "", why).status)
        self.revision = revision
        self.unready: StatusError | None = None


def undecodable(why: str, revision: int) -> str:
    """The text of an object that can't be decoded, where such objects may be deleted (upstream: corrupt_obj_deleter.go)."""
    return f"object not decodable revision={revision}: {why}"


def corrupt_object(key: str, why: str) -> str:
    """The text of upstream's StorageError about an object that can't be read."""
    return f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"


def corrupt_list(resource: GroupResource, errors: Mapping[str, str]) -> Status:
    """The Status of a list with objects that can't be read. `errors`: key -> the text of its StorageError, at least one."""
    first, *others = errors.values()
    more = f" (and {len(others)} more)" if others else ""
    causes = [{"reason": "UnexpectedServerResponse", "message": text, "field": key} for key, text in errors.items()]
    details = {"name": "list", "group": resource.group, "kind": resource.resource, "causes": causes}
    message = f"failed to read one or more {resource} from the storage: {first}{more}"
    return status_error(500, "StorageReadError", message, details).status


def unready_cache(kind: str, why: str, downtime: float) -> StatusError:
    """The error of upstream's cache of a kind, which can't be filled since `downtime` seconds (upstream: cacher/delegator.go)."""
    seconds = min(30.0, max(1.0, math.exp(min(0.06 * downtime, 10.0))))
    return new_too_many_requests(f"storage is (re)initializing: failed to list {kind}: {why}", int(seconds))


class AdmissionChain(Protocol):
    async def admit(self, attributes: Attributes) -> None:
        """Runs the mutating plugins in order, which change `attributes.object`. StatusError refuses the request."""

    async def validate(self, attributes: Attributes) -> None:
        """Runs the validating plugins in order. StatusError refuses the request."""
