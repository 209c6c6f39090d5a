"""The objects of a fresh server."""

from collections import Counter

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apis import bootstrap, scheme
from fakeapiserver.apis.scheme import load

SET_BY_THE_SERVER = {"uid", "resourceVersion", "creationTimestamp"}


def test_kinds_and_names() -> None:
    found = {(item["kind"], item["metadata"]["name"]) for item in bootstrap.objects(load())}
    assert {
        ("Namespace", "kube-system"),
        ("Namespace", "default"),
        ("ClusterRole", "cluster-admin"),
        ("ClusterRoleBinding", "system:node"),
        ("PriorityClass", "system-node-critical"),
        ("FlowSchema", "exempt"),
        ("PriorityLevelConfiguration", "catch-all"),
        ("ServiceCIDR", "kubernetes"),
        ("Service", "kubernetes"),
        ("APIService", "v1.apps"),
    } <= found


def test_nothing_that_differs_from_boot_to_boot() -> None:
    for item in bootstrap.objects(load()):
        assert not SET_BY_THE_SERVER & item["metadata"].keys()
        assert all("time" not in entry for entry in item["metadata"].get("managedFields", ()))


def test_every_object_is_of_a_served_kind() -> None:
    kinds = scheme.load().kinds
    for item in bootstrap.objects(load()):
        assert GroupVersionKind(*GroupVersion.parse(item["apiVersion"]), item["kind"]) in kinds


def test_namespaces_come_before_what_is_in_them() -> None:
    made = set()
    for item in bootstrap.objects(load()):
        if item["kind"] == "Namespace":
            made.add(item["metadata"]["name"])
        assert item["metadata"].get("namespace", "kube-system") in made | {"kube-system"}


def test_objects_are_fresh_and_unique() -> None:
    first, second = list(bootstrap.objects(load())), list(bootstrap.objects(load()))
    assert first == second
    assert first[0] is not second[0]
    names = Counter((item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in first)
    assert max(names.values()) == 1
