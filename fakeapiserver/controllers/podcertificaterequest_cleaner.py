"""Pods' certificate requests go a quarter of an hour after they came (upstream: pkg/controller/certificates/cleaner/pcrcleaner.go)."""

import logging
from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext, Periodic
from fakeapiserver.component_helpers.objects import POD_CERTIFICATE_REQUESTS
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.reconcile import Request, Result

log = logging.getLogger(__name__)

_LIFE: Final = 900.0
_PERIOD: Final = 300.0


class Cleaner:
    """Looks at all every five minutes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        gates = context.configuration.feature_gates
        version = "v1" if gates.at_least("v1.37") else "v1beta1" if gates.at_least("v1.35") else "v1alpha1"
        self._resource = POD_CERTIFICATE_REQUESTS._replace(version=version)
        self._requests = context.informer(self._resource)

    async def reconcile(self, request: Request) -> Result:
        now = self._clock.now()
        for found in self._requests.indexer.list():
            metadata = found["metadata"]
            created = seconds_of(metadata["creationTimestamp"])
            if created is None or now < created + _LIFE:
                continue
            try:
                requests = self._client.resource(self._resource, metadata["namespace"])
                await requests.delete(metadata["name"], uid=metadata["uid"])
            except StatusError as error:
                if not is_not_found(error):
                    key = f"{metadata['namespace']}/{metadata['name']}"
                    log.error("unable to delete PodCertificateRequest %s: %s", key, error)
        return Result(requeue_after=_PERIOD)


def new(context: ControllerContext) -> Sequence[Controller]:
    controller = context.controller(Cleaner(context))
    controller.add_source(Periodic())
    return [controller]
