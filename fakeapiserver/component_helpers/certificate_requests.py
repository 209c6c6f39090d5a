"""The contents of certificate signing requests (upstream: pkg/apis/certificates/helpers.go, pkg/controller/certificates)."""

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.workqueue import BucketRateLimiter, ItemExponentialFailureRateLimiter, MaxOfRateLimiter
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import CERTIFICATE_SIGNING_REQUESTS
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.handler import enqueue_request_for_object as enqueue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

if TYPE_CHECKING:
    from cryptography import x509

_NODES: Final = "system:nodes"
_NODE: Final = "system:node:"
_BOTH: Final = ("digital signature", "key encipherment")
_SIGNATURE: Final = ("digital signature",)
_WORKERS: Final = 5

Handler = Callable[[Object], Awaitable[None]]


def controller_of_requests(context: ControllerContext, handler: Handler, name: str = "") -> Controller:
    """Calls the handler with each request that has no certificate yet, a copy of the informer's own."""
    informer = context.informer(CERTIFICATE_SIGNING_REQUESTS)

    class Reconciler:
        async def reconcile(self, request: Request) -> None:
            certificate_request = informer.indexer.get_by_key(request.name)
            if certificate_request is not None and not certificate_request.get("status", {}).get("certificate"):
                await handler({**certificate_request, "status": {**certificate_request.get("status", {})}})

    backoff = MaxOfRateLimiter(ItemExponentialFailureRateLimiter(0.2, 1000.0), BucketRateLimiter(clock=context.clock))
    controller = context.controller(Reconciler(), workers=_WORKERS, name=name, rate_limiter=backoff)
    controller.add_source(Informer(informer, enqueue))
    return controller


def conditions_of(request: Object) -> Sequence[dict[str, Any]]:
    conditions: Sequence[dict[str, Any]] = request.get("status", {}).get("conditions") or ()
    return conditions


def is_approved(request: Object) -> bool:
    """Reports whether the request is approved and not denied."""
    kinds = {condition["type"] for condition in conditions_of(request)}
    return "Approved" in kinds and "Denied" not in kinds


def is_decided(request: Object) -> bool:
    return any(condition["type"] in ("Approved", "Denied") for condition in conditions_of(request))


def parse(request: Object) -> "x509.CertificateSigningRequest":
    """ValueError for what can't be read."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
    except ValueError as error:
        raise ValueError(f'unable to parse csr "{request["metadata"]["name"]}": {error}') from error


def common_name(parsed: "x509.CertificateSigningRequest") -> str:
    """The last one, as Go has it; "" without any."""
    from cryptography.x509.oid import NameOID

    names = _values(parsed.subject, NameOID.COMMON_NAME)
    return names[-1] if names else ""


def kubelet_serving_problem(parsed: "x509.CertificateSigningRequest", usages: Sequence[str]) -> str:
    """Why this is no kubelet's request for a serving certificate; "" if it is one."""
    from cryptography import x509

    if problem := _organization_problem(parsed):
        return problem
    names = _alternative_names(parsed)
    if not any(isinstance(name, x509.DNSName | x509.IPAddress) for name in names):
        return "DNS or IP subjectAltName is required"
    kinds = ((x509.RFC822Name, "Email"), (x509.UniformResourceIdentifier, "URI"))
    return _forbidden(names, kinds) or _kubelet_problem(parsed, usages, "server auth")


def kubelet_client_problem(parsed: "x509.CertificateSigningRequest", usages: Sequence[str]) -> str:
    """Why this is no kubelet's request for a client certificate; "" if it is one."""
    from cryptography import x509

    kinds = (
        (x509.DNSName, "DNS"),
        (x509.RFC822Name, "Email"),
        (x509.IPAddress, "IP"),
        (x509.UniformResourceIdentifier, "URI"),
    )
    return (
        _organization_problem(parsed)
        or _forbidden(_alternative_names(parsed), kinds)
        or _kubelet_problem(parsed, usages, "client auth")
    )


def _organization_problem(parsed: "x509.CertificateSigningRequest") -> str:
    from cryptography.x509.oid import NameOID

    organizations = _values(parsed.subject, NameOID.ORGANIZATION_NAME)
    return "" if organizations == [_NODES] else f"subject organization is not {_NODES}"


def _kubelet_problem(parsed: "x509.CertificateSigningRequest", usages: Sequence[str], own: str) -> str:
    if {*usages} not in ({*_BOTH, own}, {*_SIGNATURE, own}):
        return f"usages did not match [{' '.join(sorted((*_BOTH, own)))}]"
    return "" if common_name(parsed).startswith(_NODE) else f"subject common name does not begin with {_NODE}"


def _forbidden(names: Sequence["x509.GeneralName"], kinds: Sequence[tuple[type, str]]) -> str:
    for kind, called in kinds:
        if any(isinstance(name, kind) for name in names):
            return f"{called} subjectAltNames are not allowed"
    return ""


def _values(name: "x509.Name", oid: "x509.ObjectIdentifier") -> list[str]:
    return [str(attribute.value) for attribute in name.get_attributes_for_oid(oid)]


def _alternative_names(parsed: "x509.CertificateSigningRequest") -> Sequence["x509.GeneralName"]:
    from cryptography import x509

    try:
        return [*parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value]
    except x509.ExtensionNotFound:
        return ()
