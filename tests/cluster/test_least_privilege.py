"""The roles of `cluster.rbac.used()` are enough for the traffic they come from, and no part of them is too much."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from fakeapiserver import Cluster
from tests.cluster.test_cluster_rbac import RBAC, Client

GROUP = "rbac.authorization.k8s.io"
SHOP = "/api/v1/namespaces/shop"
READER = {"metadata": {"name": "reader"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
# Sends requests and returns for each of them whether it was forbidden.
Traffic = Callable[[Client], list[bool]]


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster, tmp_path: Path) -> Cluster:
    admin = Client(shared.kubeconfig, tmp_path)
    for kind in ("roles", "rolebindings", "configmaps"):
        admin("DELETE", f"{SHOP if kind == 'configmaps' else f'{RBAC}/namespaces/shop'}/{kind}")
    for kind in ("clusterrolebindings", "clusterroles"):
        for name in ("least", "made"):
            admin("DELETE", f"{RBAC}/{kind}/{name}")
    admin("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    shared.rbac.forget()
    return shared


def operator(client: Client) -> list[bool]:
    """Sends the requests of kopf: discovery, lists in one and all namespaces, patches and events."""
    return [
        status == 403
        for status, _ in (
            client("GET", "/apis/apps/v1/deployments"),
            client("GET", "/apis/apps/v1/namespaces/shop/deployments"),
            client("GET", f"{SHOP}/pods"),
            client("GET", f"{SHOP}/configmaps/state"),
            client("POST", f"{SHOP}/configmaps", {"metadata": {"name": "state"}}),
            client("PUT", f"{SHOP}/configmaps/state", {"metadata": {"name": "state"}}),
            client("DELETE", f"{SHOP}/configmaps/state"),
            client("GET", "/api/v1/namespaces/shop"),
            client("GET", "/metrics"),
        )
    ]


def granting(client: Client) -> list[bool]:
    """Gives rights away that it has no use for itself."""
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "joe"}],
    }
    place = f"{RBAC}/namespaces/shop"
    return [
        status == 403
        for status, _ in (
            client("POST", f"{place}/roles", READER),
            client("POST", f"{place}/rolebindings", binding),
            client("DELETE", f"{place}/rolebindings/reader"),
            client("DELETE", f"{place}/roles/reader"),
        )
    ]


def granting_what_it_has(client: Client) -> list[bool]:
    return [client("GET", f"{SHOP}/pods/web")[0] == 403, *granting(client)]


def everywhere_and_here(client: Client) -> list[bool]:
    paths = ("/api/v1/pods", f"{SHOP}/pods", f"{SHOP}/pods/web", "/api/v1/namespaces/default/pods/web/log")
    return [client("GET", path)[0] == 403 for path in paths]


def apply(admin: Client, roles: list[dict[str, Any]]) -> None:
    for role in roles:
        plural, namespace = f"{role['kind'].lower()}s", role["metadata"].get("namespace")
        place = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        assert admin("PUT", f"{place}/{plural}/least", role)[0] in (200, 201)
        binding = {
            "metadata": {"name": "least"},
            "roleRef": {"apiGroup": GROUP, "kind": role["kind"], "name": "least"},
            "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "robot"}],
        }
        assert admin("PUT", f"{place}/{plural.replace('roles', 'rolebindings')}/least", binding)[0] in (200, 201)


def weakened(roles: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The roles without one verb, one resource or one path."""
    for i, role in enumerate(roles):
        for j, rule in enumerate(role["rules"]):
            for part in ("verbs", "resources", "nonResourceURLs"):
                for left_out in rule.get(part, ()):
                    less = {**rule, part: [value for value in rule[part] if value != left_out]}
                    rules = [*role["rules"][:j], *([less] if less[part] else []), *role["rules"][j + 1 :]]
                    yield [*roles[:i], {**role, "rules": rules}, *roles[i + 1 :]]


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("traffic", [operator, granting, granting_what_it_has, everywhere_and_here])
def test_roles_are_enough_and_no_part_is_too_much(
    cluster: Cluster, tmp_path: Path, traffic: Traffic, names: bool
) -> None:
    admin, robot = Client(cluster.kubeconfig, tmp_path), Client(cluster.user("robot"), tmp_path)
    traffic(admin)
    roles = cluster.rbac.used(name="least", names=names)
    apply(admin, roles)
    assert not any(traffic(robot)), roles
    for less in weakened(roles):
        apply(admin, less)
        assert any(traffic(robot)), (roles, less)
        traffic(admin)  # remove what the interrupted traffic has left


def test_what_admission_asks_for_is_needed_too(cluster: Cluster, tmp_path: Path) -> None:
    """To approve a certificate, a user needs a right to its signer besides the right to write the approval."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder(x509.Name([])).sign(key, hashes.SHA256())
    pem = b64encode(request.public_bytes(Encoding.PEM)).decode()
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    admin = Client(cluster.kubeconfig, tmp_path)
    spec = {"request": pem, "signerName": "example.com/a", "usages": ["client auth"]}
    status, asked = admin("POST", path, {"metadata": {"name": "asked"}, "spec": spec})
    assert status == 201
    asked["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "test"}]}
    assert admin("PUT", f"{path}/asked/approval", asked)[0] == 200
    (role,) = cluster.rbac.used()
    assert {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["signers"],
        "verbs": ["approve"],
        "resourceNames": ["example.com/a"],
    } in role["rules"]


def test_rights_that_open_all_others_are_granted_by_name(cluster: Cluster, tmp_path: Path) -> None:
    granting(Client(cluster.kubeconfig, tmp_path))
    (role,) = cluster.rbac.used()
    rules = {tuple(rule["verbs"]): rule for rule in role["rules"]}
    assert rules["bind",]["resourceNames"] == ["reader"]
    assert rules["bind",]["resources"] == ["roles"]
