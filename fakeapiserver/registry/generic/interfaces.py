"""What the generic store is handed from outside."""

from collections.abc import Callable
from typing import Protocol

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import StatusError, status_error

# The random end of a generated name is not the store's business: `generateName` in, a full name out.
NameGenerator = Callable[[str], str]


class NotConverted(StatusError):
    """A stored object can't be had in the version asked for. `revision` is the object's.

    Upstream lists and watches from a cache; `unready` is the answer where such an object keeps that from being filled."""

    def __init__(self, why: str, revision: int) -> None:
        super().__init__(status_error(500, "", why).status)
        self.revision = revision
        self.unready: StatusError | None = None


class AdmissionChain(Protocol):
    async def admit(self, attributes: Attributes) -> None:
        """The mutating plugins, in order; changes attributes.object."""

    async def validate(self, attributes: Attributes) -> None:
        """The validating plugins, in order."""
