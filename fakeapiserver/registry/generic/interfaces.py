"""The interfaces of the generic store to admission and the name generator, and the errors of objects that can't be read."""

import math
from collections.abc import Callable
from typing import Protocol

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import StatusError, new_too_many_requests, status_error

# generateName -> a name with a random suffix.
NameGenerator = Callable[[str], str]


class NotConverted(StatusError):
    """A stored object can't be converted to the requested version. `revision` is the object's.

    Upstream lists and watches from a cache, which such an object may keep from filling; `unready` is the error of such a cache."""

    def __init__(self, why: str, revision: int) -> None:
        super().__init__(status_error(500, "", why).status)
        self.revision = revision
        self.unready: StatusError | None = None


def unready_cache(kind: str, why: str, downtime: float) -> StatusError:
    """The error of upstream's cache of a kind, which can't be filled since `downtime` seconds (upstream: cacher/delegator.go)."""
    seconds = min(30.0, max(1.0, math.exp(min(0.06 * downtime, 10.0))))
    return new_too_many_requests(f"storage is (re)initializing: failed to list {kind}: {why}", int(seconds))


class AdmissionChain(Protocol):
    async def admit(self, attributes: Attributes) -> None:
        """Runs the mutating plugins in order, which change `attributes.object`. StatusError refuses the request."""

    async def validate(self, attributes: Attributes) -> None:
        """Runs the validating plugins in order. StatusError refuses the request."""
