"""The authority of kube-apiserver's certificate is a ClusterTrustBundle, for pods that project it.

Upstream: pkg/controller/certificates/clustertrustbundlepublisher/publisher.go.
"""

from collections.abc import Sequence
from hashlib import sha256

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.cluster_signing import KUBE_APISERVER_SERVING
from fakeapiserver.component_helpers.controller_context import EVERYTHING, ControllerContext, Periodic
from fakeapiserver.component_helpers.objects import CLUSTER_TRUST_BUNDLES
from fakeapiserver.component_helpers.sync_metrics import SyncMetrics
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import Event, object_of
from fakeapiserver.controller_runtime.handler import Queue
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer


def _name(root_ca: bytes) -> str:
    """Returns the bundle's name, which changes with its certificates."""
    return f"{KUBE_APISERVER_SERVING.replace('/', ':')}:{sha256(root_ca).hexdigest()[:24]}"


def new_bundle(root_ca: bytes, version: str) -> Object:
    """Returns the bundle in a version of its group."""
    return {
        "apiVersion": f"{CLUSTER_TRUST_BUNDLES.group}/{version}",
        "kind": "ClusterTrustBundle",
        "metadata": {"name": _name(root_ca)},
        "spec": {"signerName": KUBE_APISERVER_SERVING, "trustBundle": root_ca.decode()},
    }


class Publisher:
    """Keeps one bundle of the signer, and deletes all others of this signer."""

    def __init__(self, context: ControllerContext) -> None:
        self._metrics = SyncMetrics(context.metrics, "clustertrustbundle_publisher_sync", "the bundle")
        self._root_ca = context.root_ca
        version = "v1" if context.configuration.feature_gates.at_least("v1.37") else "v1beta1"
        resource = CLUSTER_TRUST_BUNDLES._replace(version=version)
        self._client = context.client.resource(resource)
        self.bundles = context.informer(resource)  # upstream keeps those of its signer

    def bundle_changed(self, event: Event, queue: Queue) -> None:
        """Queues the one request there is if the bundle is of the signer."""
        if object_of(event)["spec"].get("signerName") == KUBE_APISERVER_SERVING:
            queue.add(EVERYTHING)

    async def reconcile(self, request: Request) -> None:
        with self._metrics.sync():
            await self._publish()

    async def _publish(self) -> None:
        certificates, name = self._root_ca.decode(), _name(self._root_ca)
        bundle = self.bundles.indexer.get_by_key(name)
        if bundle is None:
            await self._client.create(new_bundle(self._root_ca, self._client.gvr.version))
        elif bundle["spec"]["trustBundle"] != certificates:
            await self._client.update({**bundle, "spec": {**bundle["spec"], "trustBundle": certificates}})
        failure: StatusError | None = None
        for other in self.bundles.indexer.list():
            if other["spec"].get("signerName") != KUBE_APISERVER_SERVING or other["metadata"]["name"] == name:
                continue
            try:
                await self._client.delete(other["metadata"]["name"])
            except StatusError as error:
                failure = failure if is_not_found(error) else error
        if failure is not None:
            raise failure


def _are_authorities(bundle: bytes) -> bool:
    """Reports whether each certificate has the CA bit. The API server refuses a bundle with another one, e.g. with a serving certificate
    that clients trust by itself, and upstream tries again and again."""
    from cryptography import x509

    try:
        return all(
            certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
            for certificate in x509.load_pem_x509_certificates(bundle)
        )
    except (ValueError, x509.ExtensionNotFound):
        return False


def new(context: ControllerContext) -> Sequence[Controller]:
    """Returns the controllers; no controller without a certificate authority to publish."""
    if not context.root_ca or not _are_authorities(context.root_ca):
        return []
    reconciler = Publisher(context)
    controller = context.controller(reconciler)
    controller.add_source(Informer(reconciler.bundles, reconciler.bundle_changed))
    controller.add_source(Periodic())
    return [controller]
