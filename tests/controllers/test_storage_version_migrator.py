"""Storage version migrations. In 1.36, where no server has their API by default, it is a definition's here."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakeapiserver.apimachinery.gvk import GroupVersionResource
from fakeapiserver.client.errors import StatusError
from fakeapiserver.component_helpers.objects import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS
from tests.controllers.harness import Harness, run

GATES = {"StorageVersionMigrator": True}
CONTROLLER = "storage-version-migrator-controller"
MIGRATIONS = GroupVersionResource("storagemigration.k8s.io", "v1beta1", "storageversionmigrations")
WIDGETS = GroupVersionResource("example.com", "v1", "widgets")
POLICIES = GroupVersionResource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
BINDINGS = GroupVersionResource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")
Object = dict[str, Any]


def definition(group: str, plural: str, kind: str, versions: list[Object], scope: str = "Cluster") -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, as a test"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {"served": True, "subresources": {"status": {}}, "schema": schema, **version} for version in versions
            ],
        },
    }


API = definition(
    "storagemigration.k8s.io",
    "storageversionmigrations",
    "StorageVersionMigration",
    [{"name": "v1beta1", "storage": True}],
)


def migration(name: str, resource: str, group: str = "") -> Object:
    return {
        "apiVersion": "storagemigration.k8s.io/v1beta1",
        "kind": "StorageVersionMigration",
        "metadata": {"name": name},
        "spec": {"resource": {"resource": resource, "group": group}},
    }


async def conditions(cluster: Harness, name: str) -> list[tuple[str, str, str, str]]:
    found = await cluster.get(MIGRATIONS, name, "")
    rows = found.get("status", {}).get("conditions", [])
    return [(row["type"], row["status"], row["reason"], row["message"]) for row in rows]


def running(scenario: Callable[[Harness], Awaitable[None]], *, gates: dict[str, bool] | None = None) -> None:
    async def with_api(cluster: Harness) -> None:
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, API, "")
        await cluster.advance(3)
        await scenario(cluster)

    run(with_api, CONTROLLER, feature_gates=GATES if gates is None else gates, version="1.36")


DONE = [
    ("Running", "False", "MigrationCompleted", "Migration completed"),
    ("Succeeded", "True", "StorageVersionMigrationSucceeded", ""),
]


def test_everything_is_written_in_the_stored_version() -> None:
    async def scenario(cluster: Harness) -> None:
        old = definition("example.com", "widgets", "Widget", [{"name": "v1", "storage": True}], "Namespaced")
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, old, "")
        for name in ("a", "b"):
            await cluster.create(
                WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}
            )
        versions = [{"name": "v1", "storage": False}, {"name": "v2", "storage": True}]
        new = definition("example.com", "widgets", "Widget", versions, "Namespaced")
        await cluster.of(CUSTOM_RESOURCE_DEFINITIONS, "").patch("widgets.example.com", {"spec": new["spec"]})
        await cluster.settle()
        before = {obj["metadata"]["name"]: obj for obj in (await cluster.of(WIDGETS).list())["items"]}
        await cluster.create(MIGRATIONS, migration("m", "widgets", "example.com"), "")
        await cluster.advance(3)
        assert await conditions(cluster, "m") == DONE
        for obj in (await cluster.of(WIDGETS).list())["items"]:
            assert int(obj["metadata"]["resourceVersion"]) > int(
                before[obj["metadata"]["name"]]["metadata"]["resourceVersion"]
            )
        status = (await cluster.get(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com", ""))["status"]
        assert status["storedVersions"] == ["v2"]
        [told] = [found for found in status["conditions"] if found["type"] == "StorageMigrating"]
        assert (told["status"], told["reason"], told["message"]) == (
            "False",
            "MigrationSucceeded",
            "The migration has succeeded and the stored versions have been updated",
        )

    running(scenario)


def test_built_in_resources_need_no_definition() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "c"}})
        await cluster.create(MIGRATIONS, migration("m", "configmaps"), "")
        await cluster.advance(3)
        assert await conditions(cluster, "m") == DONE

    running(scenario)


@pytest.mark.parametrize(
    ("resource", "group", "message"),
    [
        ("nothings", "example.com", "resource does not exist in discovery"),
        (
            "tokenreviews",
            "authentication.k8s.io",
            'resource "authentication.k8s.io/v1, Resource=tokenreviews" does not support discovery operations: '
            "[update patch list]",
        ),
        (
            "bindings",
            "",
            'resource "/v1, Resource=bindings" does not support discovery operations: [update patch list]',
        ),
    ],
)
def test_what_cannot_be_migrated_fails(resource: str, group: str, message: str) -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(MIGRATIONS, migration("m", resource, group), "")
        await cluster.advance(90)
        assert await conditions(cluster, "m") == [
            DONE[0],
            ("Failed", "True", "StorageVersionMigrationFailed", message),
        ]

    running(scenario)


def test_a_resource_has_a_minute_to_become_known() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(MIGRATIONS, migration("m", "widgets", "example.com"), "")
        await cluster.advance(20)
        assert [row[0] for row in await conditions(cluster, "m")] == ["Running"]
        made = definition("example.com", "widgets", "Widget", [{"name": "v1", "storage": True}])
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, made, "")
        await cluster.advance(60)
        assert await conditions(cluster, "m") == DONE

    running(scenario)


def test_the_oldest_of_a_resource_runs_alone() -> None:
    """Events can't be migrated: upstream's garbage collector doesn't have them, so this one runs for ever."""

    async def scenario(cluster: Harness) -> None:
        for name in ("b", "a"):
            await cluster.create(MIGRATIONS, migration(name, "events"), "")
            await cluster.advance(1)
        assert [row[:2] for row in await conditions(cluster, "b")] == [("Running", "True")]
        assert await conditions(cluster, "a") == []
        await cluster.of(MIGRATIONS, "").delete("b")
        await cluster.advance(1)
        assert [row[:2] for row in await conditions(cluster, "a")] == [("Running", "True")]

    running(scenario)


def test_a_refused_write_ends_it() -> None:
    async def scenario(cluster: Harness) -> None:
        first = definition("example.com", "widgets", "Widget", [{"name": "v1", "storage": True}])
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, first, "")
        await cluster.create(WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}, "")
        rules = [
            {"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["widgets"]}
        ]
        spec = {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "false", "message": "never"}],
        }
        await cluster.create(POLICIES, {"metadata": {"name": "p"}, "spec": spec}, "")
        binding = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
        await cluster.create(BINDINGS, binding, "")
        await cluster.create(MIGRATIONS, migration("m", "widgets", "example.com"), "")
        await cluster.advance(3)
        _, failed = await conditions(cluster, "m")
        assert failed[2:] == (
            "StorageVersionMigrationFailed",
            'migration encountered unhandled error: widgets.example.com "w" is forbidden: '
            "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: never",
        )
        status = (await cluster.get(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com", ""))["status"]
        [told] = [found for found in status["conditions"] if found["type"] == "StorageMigrating"]
        assert (told["reason"], told["message"]) == ("MigrationFailed", "The migration has failed")

    running(scenario)


def test_without_its_gate_it_does_nothing() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(MIGRATIONS, migration("m", "configmaps"), "")
        await cluster.advance(3)
        assert await conditions(cluster, "m") == []

    running(scenario, gates={})


def test_a_name_is_needed_that_definitions_have() -> None:
    """No resource is migrated while the server has no such API."""

    async def scenario(cluster: Harness) -> None:
        with pytest.raises(StatusError, match="could not find"):
            await cluster.create(MIGRATIONS, migration("m", "configmaps"), "")
        await cluster.advance(60)

    run(scenario, CONTROLLER, feature_gates=GATES)


def test_the_built_in_version_is_worked_on_without_a_gate() -> None:
    async def scenario(cluster: Harness) -> None:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        v1 = GroupVersionResource("storagemigration.k8s.io", "v1", "storageversionmigrations")
        await cluster.create(v1, {**migration("m", "configmaps"), "apiVersion": "storagemigration.k8s.io/v1"}, "")
        await cluster.advance(3)
        rows = (await cluster.get(v1, "m", ""))["status"]["conditions"]
        assert [(row["type"], row["status"], row["reason"]) for row in rows] == [row[:3] for row in DONE]

    run(scenario, CONTROLLER)
