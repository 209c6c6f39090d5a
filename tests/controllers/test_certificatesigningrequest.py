"""Certificate signing requests: approved for kubelets, signed by the cluster's authority, deleted in time."""

import base64
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fakeapiserver.component_helpers.objects import CERTIFICATE_SIGNING_REQUESTS as REQUESTS
from tests.controllers.harness import Harness, Object, run

APPROVER = "certificatesigningrequest-approving-controller"
SIGNER = "certificatesigningrequest-signing-controller"
CLEANER = "certificatesigningrequest-cleaner-controller"
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
NODE = ("system:nodes", "system:node:n1")


@cache
def pem(organization: str, name: str, *dns_names: str) -> str:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name), x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts))
    if dns_names:
        names = x509.SubjectAlternativeName([x509.DNSName(dns_name) for dns_name in dns_names])
        builder = builder.add_extension(names, critical=False)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(Encoding.PEM)).decode()


def request(request_pem: str, signer: str, usages: Sequence[str], **spec: Any) -> Object:
    return {
        "metadata": {"name": "mine"},
        "spec": {"request": request_pem, "signerName": signer, "usages": [*usages], **spec},
    }


async def decide(cluster: Harness, decision: str = "Approved") -> None:
    found = await cluster.get(REQUESTS, "mine", "")
    found["status"] = {"conditions": [{"type": decision, "status": "True", "reason": "Me", "message": "yes"}]}
    await cluster.of(REQUESTS, "").update(found, "approval")
    await cluster.settle()


async def status(cluster: Harness) -> Object:
    found: Object = (await cluster.get(REQUESTS, "mine", "")).get("status", {})
    return found


@pytest.mark.parametrize(
    ("made", "approved"),
    [
        (request(pem(*NODE), KUBELET, ("digital signature", "client auth")), True),
        (request(pem(*NODE), KUBELET, ("digital signature", "key encipherment", "client auth")), True),
        (request(pem(*NODE), KUBELET, ("digital signature", "server auth")), False),
        (request(pem(*NODE), SERVING, ("digital signature", "client auth")), False),
        (request(pem(*NODE, "n1"), KUBELET, ("digital signature", "client auth")), False),
        (request(pem("others", NODE[1]), KUBELET, ("digital signature", "client auth")), False),
        (request(pem(NODE[0], "n1"), KUBELET, ("digital signature", "client auth")), False),
    ],
)
def test_a_kubelets_client_certificate_is_approved(made: Object, approved: bool) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(REQUESTS, made, "")
        conditions = (await status(cluster)).get("conditions", [])
        assert [condition["type"] for condition in conditions] == ["Approved"] * approved

    run(scenario, APPROVER)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (request(pem("dev", "jane"), CLIENT, ("client auth",)), ""),
        (request(pem("dev", "jane"), CLIENT, ("server auth",)), "invalid usage for client certificate: server auth"),
        (
            request(pem("dev", "jane"), CLIENT, ("digital signature",)),
            "missing required usage for client certificate: client auth",
        ),
        (request(pem(*NODE, "n1"), SERVING, ("digital signature", "server auth")), ""),
        (request(pem(*NODE), SERVING, ("digital signature", "server auth")), "DNS or IP subjectAltName is required"),
        (
            request(pem(*NODE, "n1"), SERVING, ("server auth",)),
            "usages did not match [digital signature key encipherment server auth]",
        ),
    ],
)
def test_an_approved_request_is_signed_or_says_why_not(made: Object, problem: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(REQUESTS, made, "")
        assert "certificate" not in await status(cluster)
        await decide(cluster)
        found = await status(cluster)
        assert ("certificate" in found) == (not problem)
        failed = [condition for condition in found["conditions"] if condition["type"] == "Failed"]
        assert [(each["reason"], each["message"]) for each in failed] == (
            [("SignerValidationFailure", problem)] if problem else []
        )

    run(scenario, SIGNER)


@pytest.mark.parametrize(
    ("seconds", "lifetime"),
    [
        (None, timedelta(days=365)),
        (600, timedelta(minutes=15)),  # what is short isn't cut by the five minutes it is backdated
        (10 * 86400, timedelta(days=10)),
    ],
)
def test_a_certificate_holds_what_was_asked_for(seconds: int | None, lifetime: timedelta) -> None:
    async def scenario(cluster: Harness) -> None:
        spec = {} if seconds is None else {"expirationSeconds": seconds}
        made = request(pem("dev", "jane"), CLIENT, ("client auth", "digital signature"), **spec)
        await cluster.create(REQUESTS, made, "")
        await decide(cluster)
        found = x509.load_pem_x509_certificate(base64.b64decode((await status(cluster))["certificate"]))
        assert found.subject.rfc4514_string() == "CN=jane,O=dev"
        assert found.not_valid_after_utc - found.not_valid_before_utc == lifetime
        extended = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert [*extended] == [ExtendedKeyUsageOID.CLIENT_AUTH]
        assert found.extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature

    run(scenario, SIGNER)


@pytest.mark.parametrize(
    ("decision", "hours"),
    [("", 25), ("Denied", 2), ("Approved", 2)],
)
def test_a_request_goes_when_it_is_of_no_use(decision: str, hours: int) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(REQUESTS, request(pem("dev", "jane"), CLIENT, ("client auth",)), "")
        if decision:
            await decide(cluster, decision)
        await cluster.advance((hours - 1) * 3600 - 60)
        assert await cluster.names(REQUESTS, "") == ["mine"]
        await cluster.advance(3600 + 120)
        assert await cluster.names(REQUESTS, "") == []

    run(scenario, SIGNER, CLEANER)
