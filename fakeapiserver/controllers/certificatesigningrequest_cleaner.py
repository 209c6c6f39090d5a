"""Certificate signing requests go when they are of no use any more (upstream: pkg/controller/certificates/cleaner/cleaner.go)."""

import base64
import logging
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.client.errors import StatusError
from fakeapiserver.component_helpers.certificate_requests import conditions_of
from fakeapiserver.component_helpers.controller_context import ControllerContext, Periodic
from fakeapiserver.component_helpers.objects import CERTIFICATE_SIGNING_REQUESTS
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.reconcile import Request, Result

log = logging.getLogger(__name__)

_HOUR: Final = 3600.0
_PENDING: Final = 24 * _HOUR


class Cleaner:
    """Looks at all once an hour."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._requests = context.informer(CERTIFICATE_SIGNING_REQUESTS)

    async def reconcile(self, request: Request) -> Result:
        now = self._clock.now()
        for csr in self._requests.indexer.list():
            if _is_of_no_use(csr, now):
                name = csr["metadata"]["name"]
                try:
                    await self._client.resource(CERTIFICATE_SIGNING_REQUESTS).delete(name)
                except StatusError as error:
                    log.error("unable to delete CSR %s: %s", name, error)
        return Result(requeue_after=_HOUR)


def _is_of_no_use(csr: Object, now: float) -> bool:
    """Decided an hour ago and done with; undecided, or without its certificate, for a day; or the certificate's time is over."""
    conditions = conditions_of(csr)
    certificate = csr.get("status", {}).get("certificate")
    if not conditions and _is_older(csr["metadata"].get("creationTimestamp"), _PENDING, now):
        return True
    for condition in conditions:
        decided, kind = condition.get("lastUpdateTime"), condition["type"]
        if kind in ("Denied", "Failed") and _is_older(decided, _HOUR, now):
            return True
        if kind == "Approved" and _is_older(decided, _HOUR if certificate else _PENDING, now):
            return True
        if kind == "Approved" and certificate and _has_expired(certificate, now):
            return True
    return False


def _is_older(time: str | None, seconds: float, now: float) -> bool:
    since = seconds_of(time) if time else None
    return since is not None and now - since > seconds


def _has_expired(certificate: str, now: float) -> bool:
    from cryptography import x509

    try:
        parsed = x509.load_pem_x509_certificate(base64.b64decode(certificate))
    except ValueError:
        return False
    return now > parsed.not_valid_after_utc.timestamp()


def new(context: ControllerContext) -> Sequence[Controller]:
    controller = context.controller(Cleaner(context))
    controller.add_source(Periodic())
    return [controller]
