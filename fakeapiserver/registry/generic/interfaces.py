"""What the generic store is handed from outside."""

from collections.abc import Callable
from typing import Protocol

from fakeapiserver.admission.interfaces import Attributes

# The random end of a generated name is not the store's business: `generateName` in, a full name out.
NameGenerator = Callable[[str], str]


class AdmissionChain(Protocol):
    async def admit(self, attributes: Attributes) -> None:
        """The mutating plugins, in order; changes attributes.object."""

    async def validate(self, attributes: Attributes) -> None:
        """The validating plugins, in order."""
