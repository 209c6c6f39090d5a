"""Validation of a pod's resource claims, in its spec and its status.

Upstream: pkg/apis/core/validation/validation.go (validatePodResourceClaims, validatePodResourceClaimStatuses,
validatePodExtendedResourceClaimStatus, validateNodeAllocatableResourceClaimStatus).
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.internal_form import internal_form
from fakeapiserver.registry.core.field_formats import duplicate_errors, name_errors
from fakeapiserver.registry.core.pod.mirror_pod import NOWHERE
from fakeapiserver.registry.core.resource_list import quantity

_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")
_BOTH: Final = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
_NEITHER: Final = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
_UNKNOWN: Final = "must match the name of an entry in `spec.resourceClaims`"
_NOT_OF_NODE: Final = "must be a node allocatable resource name"
_NO_CONTAINER: Final = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
_NO_REQUEST: Final = (
    "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
    "spec.containers.resources.requests"
)


def resource_claim_errors(claims: Sequence[Object], path: Path, *, is_static: bool) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        if is_static:
            errors.append(field.forbidden(NOWHERE, "static pods do not support resource claims"))
        else:
            errors += _claim_errors(claim, seen, path.index(i))
    return errors


def _claim_errors(claim: Object, seen: set[str], path: Path) -> ErrorList:
    name = claim.get("name", "")
    if not name:
        errors: ErrorList = [field.required(path.child("name"))]
    else:
        errors = duplicate_errors(name, seen, path.child("name"))
        errors = errors or name_errors(name, names.is_dns1123_label, path.child("name"))
    given = [source for source in _SOURCES if source in claim]
    if len(given) != 1:
        errors.append(field.invalid(path, internal_form(claim, "PodResourceClaim"), _BOTH if given else _NEITHER))
    for source in given:
        errors += name_errors(claim[source], names.is_dns1123_subdomain, path.child(source))
    return errors


def claim_status_errors(statuses: Sequence[Object], claims: Sequence[Object], path: Path) -> ErrorList:
    known = {claim.get("name", "") for claim in claims}
    errors: ErrorList = []
    seen: set[str] = set()
    for i, status in enumerate(statuses):
        at, name = path.index(i), status.get("name", "")
        if name not in known:
            errors.append(field.invalid(at.child("name"), name, _UNKNOWN))
        errors += duplicate_errors(name, seen, at.child("name"))
        if "resourceClaimName" in status:
            claim = status["resourceClaimName"]
            errors += name_errors(claim, names.is_dns1123_subdomain, at.child("resourceClaimName"))
    return errors


def extended_claim_status_errors(status: Object | None, spec: Object, path: Path) -> ErrorList:
    """The errors in the status about the claim for containers' extended resources."""
    if status is None:
        return []
    containers = {
        container.get("name", ""): container
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
    }
    mappings, at = status.get("requestMappings") or (), path.child("requestMappings")
    errors = [] if mappings else [field.required(at, "at least one request mapping is required")]
    seen: set[tuple[str, ...]] = set()
    for i, mapping in enumerate(mappings):
        key = tuple(mapping.get(name, "") for name in ("containerName", "resourceName", "requestName"))
        container, resource, request = key
        mapping_path = at.index(i)
        if container not in containers:
            errors.append(field.invalid(mapping_path.child("containerName"), container, _NO_CONTAINER))
        elif resource not in ((containers[container].get("resources") or {}).get("requests") or {}):
            errors.append(field.invalid(mapping_path.child("resourceName"), resource, _NO_REQUEST))
        errors += name_errors(request, names.is_dns1123_label, path.child("requestName"))
        if key in seen:
            required_names = ("containerName", "resourceName", "requestName")
            errors += [
                field.duplicate(mapping_path.child(name), value)
                for name, value in zip(required_names, key, strict=True)
            ]
        seen.add(key)
    name = status.get("resourceClaimName", "")
    if not name:
        return [*errors, field.required(path.child("resourceClaimName"))]
    return errors + name_errors(name, names.is_dns1123_subdomain, path.child("resourceClaimName"))


def node_allocatable_status_errors(status: Object, claims: Sequence[Object], path: Path, version: str) -> ErrorList:
    """The errors in the node resources that claims take. A claim is the pod's, or was created for the pod from a template."""
    known = [claim.get("resourceClaimName") for claim in (*claims, *(status.get("resourceClaimStatuses") or ()))]
    errors: ErrorList = []
    seen: set[str] = set()
    for i, row in enumerate(status.get("nodeAllocatableResourceClaimStatuses") or ()):
        at, name = path.index(i), row.get("resourceClaimName", "")
        if not name:
            errors.append(field.required(at.child("resourceClaimName"), "must not be empty"))
        if name not in known and (name or version < "v1.37"):
            errors.append(field.invalid(at.child("resourceClaimName"), name, "no mapping found in pod reference"))
        if version < "v1.37":
            errors += _resources_errors(row, at)
            continue
        if name in seen:
            errors.append(field.duplicate(at, row))
        seen.add(name)
        for kind, amounts in (("mapping", ("quantity",)), ("overhead", ("perPod", "perContainer"))) if name else ():
            errors += _allocations_errors(row.get(kind) or (), amounts, at.child(kind))
    return errors


def _allocations_errors(rows: Sequence[Object], amounts: Sequence[str], path: Path) -> ErrorList:
    """The errors in resources of a node with their amounts; of several amounts at least one must be there."""
    errors: ErrorList = []
    for i, row in enumerate(rows):
        at, resource = path.index(i), row.get("name", "")
        if not resource:
            errors.append(field.required(at.child("name")))
        if not _is_of_node(resource):
            errors.append(field.invalid(at.child("name"), resource, _NOT_OF_NODE))
        given = [name for name in amounts if row.get(name) is not None]
        if not given and len(amounts) == 1:
            errors.append(field.required(at.child(amounts[0])))
        elif not given:
            errors.append(field.invalid(at, "", f"at least one of {' or '.join(amounts)} must be set"))
        negative = [name for name in given if quantity(str(row[name])) < 0]
        errors += [field.invalid(at.child(name), str(row[name]), "must be non-negative") for name in negative]
    return errors


def _resources_errors(row: Object, path: Path) -> ErrorList:
    """The errors in the resources of a claim, until 1.36."""
    errors = [
        field.required(path.child(name), "must not be empty")
        for name in ("containers", "resources")
        if not row.get(name)
    ]
    for resource, amount in sorted((row.get("resources") or {}).items()):
        resource_path = path.child("resources").key(resource)
        if not _is_of_node(resource):
            errors.append(field.invalid(resource_path, field.json_text(resource), _NOT_OF_NODE))
        if quantity(str(amount)) < 0:
            errors.append(field.invalid(resource_path, amount, "must be non-negative"))
    return errors


def _is_of_node(resource: str) -> bool:
    return "/" not in resource or "kubernetes.io/" in resource
