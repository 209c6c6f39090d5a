"""Objects of a fresh server that are stored without requests are those that the requests would have made."""

import asyncio
import re

import pytest

from fakeapiserver import Cluster
from fakeapiserver.server.apiserver import APIServer
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.upkeep import bootstrap, first_objects, stored_forms

_STOPPED = "2026-01-01T00:00:00Z"
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(T[0-9:.]+Z)?")
_CERTIFICATE = re.compile(r"-----BEGIN.*?END CERTIFICATE-----")


def stored(cluster: Cluster) -> list[tuple[str, int, str]]:
    """Key, revision and value of everything stored, without uids and certificates, by revision."""
    found = [each for bucket in cluster.snapshot().buckets.values() for each in bucket.values()]
    rows = [(each.key, each.mod_revision, _UID.sub("", _CERTIFICATE.sub("", each.value.decode()))) for each in found]
    return sorted(rows, key=lambda row: row[1])


def test_they_are_those_that_controllers_write() -> None:
    controllers = ("serviceaccount-controller", "root-ca-certificate-publisher-controller")
    states = []
    for records in (False, True):  # a recording has the controllers' requests, so they are sent
        config = Config(controllers=controllers, records=records, seed=1, stopped_at=1767225600.0)
        assert first_objects.may_store(config) is not records
        with Cluster.from_config(config) as cluster:
            cluster.settle()
            states.append(stored(cluster))
    assert states[0] == states[1]
    assert len([key for key, _, _ in states[0] if key.endswith(("/default", "/kube-root-ca.crt"))]) >= 8


@pytest.mark.parametrize("stepped", [first_objects.ACCOUNTS, first_objects.PUBLISHER])
def test_a_controller_that_waits_makes_none(stepped: str) -> None:
    with Cluster(step_controllers=[stepped], controllers=[first_objects.ACCOUNTS, first_objects.PUBLISHER]) as cluster:
        made = {
            first_objects.ACCOUNTS: bool(cluster.list("serviceaccounts", namespace="default")),
            first_objects.PUBLISHER: bool(cluster.list("configmaps", namespace="default")),
        }
    assert made == {first_objects.ACCOUNTS: True, first_objects.PUBLISHER: True} | {stepped: False}


def test_controllers_bring_them_back() -> None:
    with Cluster(controllers=[first_objects.ACCOUNTS, first_objects.PUBLISHER]) as cluster:
        names = ("sa/default", "cm/kube-root-ca.crt")
        uids = [cluster.get(name)["metadata"]["uid"] for name in names]
        for name in names:
            cluster.delete(name)
        cluster.settle()
        assert all(cluster.get(name)["metadata"]["uid"] not in uids for name in names)


@pytest.mark.parametrize(
    "fields",
    [
        {"authorization_mode": ("AlwaysDeny",)},
        {"enable_admission_plugins": ("AlwaysDeny",)},
        {"records": True},
        {"webhooks": ({"kind": "MutatingWebhookConfiguration"},)},
    ],
)
def test_requests_are_sent_if_they_may_be_refused_changed_or_seen(fields: dict[str, object]) -> None:
    assert first_objects.may_store(Config())
    assert not first_objects.may_store(Config(**fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kubernetes_version": "1.33"},
        {"feature_gates": {"GenericWorkload": True}, "runtime_config": {"api/alpha": "true"}},
    ],
)
def test_the_second_cluster_of_a_process_is_as_the_first(options: dict[str, object]) -> None:
    states, uids = [], set[str]()
    for seed in (1, 2):
        with Cluster(controllers=(), seed=seed, stopped_at=_STOPPED, **options) as cluster:  # type: ignore[arg-type]
            states.append(stored(cluster))
            uids.add(cluster.get("ns/default")["metadata"]["uid"])
            text = repr([each.value for bucket in cluster.snapshot().buckets.values() for each in bucket.values()])
            assert stored_forms.DATE not in text
            assert not re.search("00000000-0000-4", text)
    assert states[0] == states[1]
    assert len(uids) == 2


@pytest.mark.parametrize(("ranges", "address"), [("10.0.0.0/24", "10.0.0.1"), ("10.7.0.0/24", "10.7.0.1")])
def test_each_has_its_own_addresses(ranges: str, address: str) -> None:
    with Cluster.from_config(Config(controllers=(), service_cluster_ip_range=ranges)) as cluster:
        assert cluster.get("svc/kubernetes")["spec"]["clusterIP"] == address


@pytest.mark.parametrize("stopped_at", [_STOPPED, "2027-05-06T07:08:09Z"])
def test_each_has_its_own_time(stopped_at: str) -> None:
    with Cluster(controllers=(), stopped_at=stopped_at) as cluster:
        assert cluster.get("ns/default")["metadata"]["creationTimestamp"] == stopped_at
        tracking = cluster.get("cm/kube-apiserver-legacy-service-account-token-tracking", namespace="kube-system")
        assert tracking["data"] == {"since": stopped_at[:10]}


@pytest.mark.parametrize(
    "fields",
    [
        {"kubernetes_version": "1.33"},
        {"feature_gates": {"ClusterTrustBundle": True}, "runtime_config": {"certificates.k8s.io/v1beta1": "true"}},
        {"runtime_config": {"flowcontrol.apiserver.k8s.io/v1": "false"}},
        {"service_cluster_ip_range": "10.7.0.0/24"},
        {"secure_port": 7560},
        {"kubernetes_service_node_port": 30_999},
    ],
    ids=repr,
)
def test_default_objects_follow_each_field_that_they_depend_on(fields: dict[str, object]) -> None:
    """Objects that an earlier server of the process had are used only for the same configuration."""

    def state(**options: object) -> dict[str, str]:
        async def start() -> dict[str, str]:
            server = APIServer(Config(**options))  # type: ignore[arg-type]
            await server.start()
            await server.stop()
            buckets = server.storage.snapshot().buckets.values()
            found = [each for bucket in buckets for each in bucket.values()]
            return {each.key: _TIME.sub("", _UID.sub("", each.value.decode())) for each in found}

        return asyncio.run(start())

    bootstrap._forms.clear()
    expected = state(**fields)
    bootstrap._forms.clear()
    others = state()
    assert state(**fields) == expected != others
    assert state() == others
