"""Pods' certificate requests go after a while, and kube-apiserver's authority is a bundle. The gates of both are on since 1.37."""

from base64 import b64encode
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from fakeapiserver.component_helpers.objects import CLUSTER_TRUST_BUNDLES as BUNDLES
from fakeapiserver.component_helpers.objects import POD_CERTIFICATE_REQUESTS as REQUESTS
from fakeapiserver.transport.certificates import create_authority
from tests.controllers.harness import Harness, Object, run

CLEANER = "podcertificaterequest-cleaner-controller"
PUBLISHER = "kube-apiserver-serving-clustertrustbundle-publisher-controller"
SIGNER = "kubernetes.io/kube-apiserver-serving"
UID = "9a5b1d4e-8a0f-4f3d-9d1c-0b4cf31d2f11"


@cache
def stub() -> str:
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return b64encode(signed.public_bytes(Encoding.DER)).decode()


def request(name: str) -> Object:
    spec = {"signerName": "example.com/mine", "podName": "p", "podUID": UID, "nodeName": "n", "nodeUID": UID}
    account = {"serviceAccountName": "default", "serviceAccountUID": UID}
    return {"metadata": {"name": name}, "spec": {**spec, **account, "stubPKCS10Request": stub()}}


def test_requests_go_when_they_are_a_quarter_of_an_hour_old() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(REQUESTS, request("first"))
        await cluster.advance(200)
        await cluster.create(REQUESTS, request("second"))
        await cluster.advance(690)
        assert await cluster.names(REQUESTS) == ["first", "second"]
        # looked at every 300 seconds
        await cluster.advance(15)
        assert await cluster.names(REQUESTS) == ["second"]
        await cluster.advance(300)
        assert await cluster.names(REQUESTS) == []

    run(scenario, CLEANER)


def bundle(name: str, signer: str) -> Object:
    authority = create_authority("other").certificate.decode()
    return {"metadata": {"name": name}, "spec": {"signerName": signer, "trustBundle": authority}}


def test_the_authority_has_the_one_bundle_of_its_signer() -> None:
    async def scenario(cluster: Harness) -> None:
        (name,) = await cluster.names(BUNDLES, "")
        assert name.startswith("kubernetes.io:kube-apiserver-serving:")
        published = (await cluster.get(BUNDLES, name, ""))["spec"]
        assert published == {"signerName": SIGNER, "trustBundle": cluster.manager._shared.root_ca.decode()}

        await cluster.create(BUNDLES, bundle("kubernetes.io:kube-apiserver-serving:old", SIGNER), "")
        await cluster.create(BUNDLES, bundle("example.com:mine:a", "example.com/mine"), "")
        assert await cluster.names(BUNDLES, "") == ["example.com:mine:a", name]

        changed = {"spec": {"trustBundle": bundle("", "")["spec"]["trustBundle"]}}
        await cluster.of(BUNDLES, "").patch(name, changed)
        await cluster.settle()
        assert (await cluster.get(BUNDLES, name, ""))["spec"] == published

        await cluster.of(BUNDLES, "").delete(name)
        await cluster.settle()
        assert name in await cluster.names(BUNDLES, "")

    run(scenario, PUBLISHER)


@pytest.mark.parametrize(
    ("controller", "gate"), [(CLEANER, "PodCertificateRequest"), (PUBLISHER, "ClusterTrustBundle")]
)
def test_without_its_gate_a_controller_has_nothing_to_do(controller: str, gate: str) -> None:
    async def scenario(cluster: Harness) -> None:
        assert cluster.manager.started == []

    switched = {gate: False, **({"ClusterTrustBundleProjection": False} if gate == "ClusterTrustBundle" else {})}
    run(scenario, controller, feature_gates=switched)
    run(scenario, controller, version="1.36")
