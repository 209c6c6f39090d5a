"""Admission for the stores of a server that was started with --read-only.

Upstream has no such server. A write that admission refuses to every user is a 403 there, e.g. one in a namespace that is being deleted.
Clients don't repeat a request after a 403, as they do after a 503. A DELETE of an object that doesn't exist stays a 404.
"""

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import new_forbidden
from fakeapiserver.registry.generic.interfaces import AdmissionChain
from fakeapiserver.storage.interface import READ_ONLY


class ReadOnlyAdmission:
    """Refuses all writes but dry runs, before webhooks are called. `chain` is the admission of dry runs."""

    def __init__(self, chain: AdmissionChain) -> None:
        self._chain = chain

    async def admit(self, attributes: Attributes) -> None:
        """Raises StatusError 403."""
        if not attributes.dry_run:
            raise new_forbidden(attributes.resource.group_resource, attributes.name, READ_ONLY)
        await self._chain.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        await self._chain.validate(attributes)
