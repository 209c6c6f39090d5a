"""Tests which accesses of a test were allowed and denied, and the role that a controller needs."""

import json
import ssl
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.serializer import yaml

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(controllers=()) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Cluster:
    shared.rbac.forget()
    return shared


class Client:
    """Talks as a kubeconfig says, with nothing but Python's own library."""

    def __init__(self, kubeconfig: str, folder: Path) -> None:
        config = json.loads(Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url = cluster["server"]
        self._headers = {"Content-Type": "application/json"}
        self._context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        else:
            pem = folder / f"{len(list(folder.iterdir()))}.pem"
            pem.write_bytes(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
            self._context.load_cert_chain(pem)

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context) as answer:
                return answer.status, _content(answer)
        except urllib.error.HTTPError as error:
            return error.code, _content(error)

    def open(self, path: str) -> Any:
        """An answer that goes on."""
        return urllib.request.urlopen(
            urllib.request.Request(self._url + path, headers=self._headers), context=self._context
        )


def _content(answer: Any) -> Any:
    return json.load(answer) if answer.headers["Content-Type"] == "application/json" else answer.read()


@pytest.fixture
def admin(cluster: Cluster, tmp_path: Path) -> Client:
    return Client(cluster.kubeconfig, tmp_path)


def test_what_was_refused(cluster: Cluster, tmp_path: Path) -> None:
    jane = Client(cluster.user("jane"), tmp_path)
    assert jane("GET", "/api/v1/namespaces/default/pods")[0] == 403
    assert jane("GET", "/version")[0] == 200
    (denied,) = cluster.rbac.denied
    assert str(denied) == 'User "jane" cannot list resource "pods" in API group "" in the namespace "default"'
    assert (denied.access.user, denied.access.verb, denied.access.resource) == ("jane", "list", "pods")


def test_the_least_that_a_controller_needs(cluster: Cluster, admin: Client, tmp_path: Path) -> None:
    """Run it as admin, ask for its roles, give them to its service account: it works as before, and nothing more does."""
    file = tmp_path / "roles.yaml"

    def controller(client: Client) -> list[int]:
        settings, leases = "/api/v1/namespaces/shop/configmaps", "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
        return [
            client("GET", "/api")[0],
            client("GET", "/api/v1/nodes")[0],
            client("GET", "/metrics")[0],
            client("GET", settings)[0],
            client("PUT", f"{settings}/state", {"metadata": {"name": "state"}})[0] // 100,
            client("GET", leases)[0],
        ]

    admin("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    admin("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "controller"}})
    robot = Client(cluster.service_account("shop/controller"), tmp_path)
    cluster.rbac.forget()
    done = controller(admin)
    assert done == [200, 200, 200, 200, 4, 200]
    found = cluster.rbac.used(name="controller", path=file)
    assert found == [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "controller"},
            "rules": [
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
                {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "controller", "namespace": "shop"},
            "rules": [
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "update"]},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]},
            ],
        },
    ]
    assert yaml.decode(file.read_bytes()) == found[0]
    assert controller(robot) != done
    who = [{"kind": "ServiceAccount", "name": "controller", "namespace": "shop"}]
    for role in found:
        plural, namespace = role["kind"].lower() + "s", role["metadata"].get("namespace")
        place = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        assert admin("POST", f"{place}/{plural}", role)[0] == 201
        binding = {
            "metadata": {"name": "controller"},
            "roleRef": {"kind": role["kind"], "name": "controller"},
            "subjects": who,
        }
        assert admin("POST", f"{place}/{plural.replace('roles', 'rolebindings')}", binding)[0] == 201
    cluster.rbac.forget()
    assert controller(robot) == done
    assert cluster.rbac.denied == []
    assert robot("DELETE", "/api/v1/namespaces/shop/configmaps/state")[0] == 403


def test_only_one_user_and_only_named_objects(cluster: Cluster, admin: Client, tmp_path: Path) -> None:
    masters = Client(cluster.user("eve", groups=["system:masters"]), tmp_path)
    masters("GET", "/api/v1/namespaces/default/secrets/one")
    admin("GET", "/api/v1/namespaces/default/secrets/two")
    (role,) = cluster.rbac.used("eve", names=True)
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]}
    assert role["rules"] == [rule]


def test_a_right_that_is_taken_away_is_gone_at_once(cluster: Cluster, admin: Client, tmp_path: Path) -> None:
    """The next request is refused; what is watched already goes on, as it does upstream."""
    reader = {"metadata": {"name": "kim"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]}
    subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "kim"}]
    binding = {"metadata": {"name": "kim"}, "roleRef": {"kind": "ClusterRole", "name": "kim"}, "subjects": subjects}
    pods, bindings, roles = "/api/v1/namespaces/default/pods", f"{RBAC}/clusterrolebindings", f"{RBAC}/clusterroles"
    kim = Client(cluster.user("kim"), tmp_path)
    assert admin("POST", roles, reader)[0] == 201
    for _ in range(3):
        assert kim("GET", pods)[0] == 403
        assert admin("POST", bindings, binding)[0] == 201
        assert kim("GET", pods)[0] == 200
        watch = kim.open(f"{pods}?watch=1&timeoutSeconds=20")
        assert admin("DELETE", f"{bindings}/kim")[0] == 200
        assert kim("GET", pods)[0] == 403
        pod = {"metadata": {"name": "seen"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        assert admin("POST", f"{pods}?fieldManager=x", pod)[0] == 201
        assert json.loads(watch.readline())["object"]["metadata"]["name"] == "seen"
        watch.close()
        admin("DELETE", f"{pods}/seen")
    assert admin("POST", bindings, binding)[0] == 201
    for rules in ([], reader["rules"], [{**reader["rules"][0], "verbs": ["get"]}], reader["rules"]):
        assert admin("PUT", f"{roles}/kim", {**reader, "rules": rules})[0] == 200
        assert kim("GET", pods)[0] == (200 if rules == reader["rules"] else 403)
    admin("DELETE", f"{roles}/kim")
    assert kim("GET", pods)[0] == 403
