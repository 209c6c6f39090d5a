"""Names, schemas and columns of definitions."""

from typing import TYPE_CHECKING

import msgspec

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import new_forbidden
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.apiextensions import accepted_names
from fakeapiserver.registry.generic.interfaces import AdmissionChain
from fakeapiserver.server.apiextensions.state import Stored

if TYPE_CHECKING:
    pass


def replicas_paths(obj: Object) -> dict[str, tuple[str, ...] | None]:
    """apiVersion -> the path elements of the replicas; None for a version without the scale subresource."""
    paths: dict[str, tuple[str, ...] | None] = {}
    for version in obj["spec"]["versions"]:
        scale = (version.get("subresources") or {}).get("scale")
        parts = scale.get("specReplicasPath", "").lstrip(".").split(".") if scale else ()
        paths[f"{obj['spec']['group']}/{version['name']}"] = tuple("f:" + part for part in parts) or None
    return paths


class NoCreation:
    """Admission for the resource of a definition that is on its way out (forbidCreateAdmission)."""

    def __init__(self, chain: AdmissionChain) -> None:
        self._chain = chain

    async def admit(self, attributes: Attributes) -> None:
        if attributes.operation == "CREATE":
            why = "create not allowed while custom resource definition is terminating"
            raise new_forbidden(attributes.resource.group_resource, attributes.name, why)
        await self._chain.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        await self._chain.validate(attributes)


def accepted_in_use(value: bytes) -> accepted_names.Names:
    """Returns the accepted names of a stored definition."""
    status = msgspec.json.decode(value, type=Stored).status
    return (status and status.accepted_names) or {}


def schema_of(version: Object) -> Object:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def selectable(version: Object) -> list[str]:
    return [field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()]
