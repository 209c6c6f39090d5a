"""The recorded scheme: what it knows, and that it parses no schema before one is asked for."""

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from fakeapiserver.apis import scheme
from fakeapiserver.apis.scheme import RecordedDefinitions, load, serving, storage_version_hash

POD = "io.k8s.api.core.v1.Pod"


def test_load_is_cached_by_version() -> None:
    assert scheme.load("v1.36") is scheme.load("v1.36")


def test_unknown_version_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no recorded tables for Kubernetes v0\.1; there are: .*v1\.36"):
        scheme.load("v0.1")


def test_pods() -> None:
    pods = scheme.load().resources[GroupVersionResource("", "v1", "pods")]
    assert pods.gvk == GroupVersionKind("", "v1", "Pod")
    assert (pods.singular, pods.namespaced, pods.short_names, pods.categories) == ("pod", True, ("po",), ("all",))
    assert pods.definition == POD
    assert pods.returns_deleted
    assert pods.storage_version_hash == "xPOwRZ+Yhw8="
    assert [column["name"] for column in pods.columns[:3]] == ["Name", "Ready", "Status"]
    assert pods.subresources["exec"].query_parameters["tty"] == "boolean"
    assert pods.subresources["eviction"].gvk == GroupVersionKind("policy", "v1", "Eviction")


@pytest.mark.parametrize(
    ("group", "versions"),
    [("", ("v1",)), ("autoscaling", ("v2", "v1")), ("apps", ("v1",)), ("apiregistration.k8s.io", ("v1",))],
)
def test_groups_hold_their_versions_preferred_first(group: str, versions: tuple[str, ...]) -> None:
    assert scheme.load().groups[group] == versions


def test_every_resource_has_a_schema_and_every_listable_one_columns() -> None:
    known = scheme.load()
    for resource in known.resources.values():
        assert resource.definition in known.definitions
        assert bool(resource.columns) == ("list" in resource.verbs)
        assert known.resource_for(resource.gvk) is resource


def test_priorities() -> None:
    assert scheme.load().priorities[GroupVersion("autoscaling", "v2")] == (17500, 30)


def test_definitions_are_parsed_when_asked_for() -> None:
    definitions = RecordedDefinitions(scheme.VERSIONS / "v1.36")
    assert definitions._lines is None
    assert definitions[POD]["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert list(definitions._parsed) == [POD]
    assert definitions[POD] is definitions[POD]
    assert len(definitions) == len(list(definitions))


def test_unknown_definition() -> None:
    definitions = scheme.load().definitions
    assert "nope" not in definitions
    assert definitions.get("nope") is None


# Recorded hashes of kinds stored at another version than the one they are served at.
@pytest.mark.parametrize(
    ("served", "stored"),
    [
        (GroupVersionResource("apps", "v1", "deployments"), GroupVersionKind("apps", "v1", "Deployment")),
        (
            GroupVersionResource("autoscaling", "v1", "horizontalpodautoscalers"),
            GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler"),
        ),
        (GroupVersionResource("events.k8s.io", "v1", "events"), GroupVersionKind("", "v1", "Event")),
    ],
)
def test_storage_version_hash(served: GroupVersionResource, stored: GroupVersionKind) -> None:
    assert scheme.load().resources[served].storage_version_hash == storage_version_hash(stored)


def test_servers_with_equal_switches_share_a_scheme() -> None:
    """Schemas are compiled once for each scheme, and kept."""
    switched = [serving("v1.36", {"WatchList": False}, {"api/removed": "true"}) for _ in range(2)]
    assert switched[0] is switched[1]
    assert switched[0].definitions is load("v1.36").definitions
    assert serving("v1.36", {"WatchList": True}, {"api/removed": "true"}) is not switched[0]
