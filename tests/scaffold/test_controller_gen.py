"""Compares models in Python with the definitions that controller-gen makes of the same Go types and markers.

`controller_gen/record` describes how these were recorded; descriptions are left out.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import ConfigDict, Field

from fakeapiserver.controller_runtime import markers
from fakeapiserver.controller_runtime.markers import Column, Scale, rbac, webhook
from fakeapiserver.controller_runtime.models import Condition, CustomResource, Duration, Int32, Model, Quantity
from fakeapiserver.scaffold import crd, manifests

RECORDED = Path(__file__).parent / "controller_gen"
JsonObject = dict[str, Any]


class Port(Model):
    number: int = Field(ge=1, le=65535)
    name: str | None = None
    protocol: Literal["TCP", "UDP"] = "TCP"


class Range(Model):
    model_config = ConfigDict(
        json_schema_extra=markers.rules({"rule": "self.low <= self.high", "message": "low is above high"})
    )
    low: int
    high: int


class Source(Model):
    model_config = ConfigDict(json_schema_extra=markers.exactly_one_of("git", "image"))
    git: str | None = None
    image: str | None = None


class Common(Model):
    paused: bool | None = None


META = "io.k8s.apimachinery.pkg.apis.meta.v1"
CORE = "io.k8s.api.core.v1"


class FeatSpec(Common):
    text: str
    word: str = Field(min_length=1, max_length=63, pattern="^[a-z]+$")
    maybe: str | None = None
    nullable: str | None = Field(default=None, json_schema_extra=markers.nullable())
    count: Int32 = 3
    positive: int = Field(gt=0, multiple_of=5)
    ratio: float | None = None
    ports: list[Port] = Field(default_factory=list, json_schema_extra=markers.list_map("number", "protocol"))
    tags: set[str] = Field(default_factory=set)
    steps: list[str] = Field(min_length=1, max_length=4, json_schema_extra=markers.list_atomic())
    labels: dict[str, str] = Field(default_factory=dict, max_length=7)
    limits: dict[str, Quantity] = Field(default_factory=dict, json_schema_extra=markers.map_atomic())
    port: int | str | None = None
    memory: Quantity | None = None
    timeout: Duration | None = None
    since: datetime | None = None
    any: Any = None
    free: JsonObject | None = None
    object: JsonObject | None = Field(default=None, json_schema_extra=markers.embedded_resource())
    fixed: str = Field(json_schema_extra=markers.immutable())
    range: Range | None = None
    source: Source | None = None
    whole: Range | None = Field(default=None, json_schema_extra=markers.map_atomic())
    selector: JsonObject | None = Field(default=None, json_schema_extra=markers.builtin(f"{META}.LabelSelector"))
    resources: JsonObject | None = Field(
        default=None, json_schema_extra=markers.builtin(f"{CORE}.ResourceRequirements")
    )
    matrix: list[list[int]] = Field(default_factory=list)
    nested: dict[str, list[Port]] = Field(default_factory=dict)
    email: str | None = Field(default=None, json_schema_extra={"format": "email"})
    level: Literal[1, 2, 3] | None = None


class FeatStatus(Model):
    replicas: int | None = None
    selector: str | None = None
    conditions: list[Condition] = Field(default_factory=list, json_schema_extra=markers.list_map("type"))


@markers.resource(
    "example.com/v1",
    "Feat",
    short_names=["ft", "fea"],
    categories=["all", "mine"],
    cluster_scoped=True,
    scale=Scale(".spec.count", ".status.replicas", ".status.selector"),
    columns=[
        Column("Count", ".spec.count", "integer", 1, "how many", "int32"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
    selectable_fields=[".spec.text"],
    deprecated="use v2",
)
class Feat(CustomResource):
    spec: FeatSpec
    status: FeatStatus | None = None


GROUP = "batch.tutorial.kubebuilder.io"
Reference = Annotated[JsonObject, Field(json_schema_extra=markers.builtin(f"{CORE}.ObjectReference"))]


class AnyCronJobSpec(Model):
    starting_deadline_seconds: int | None = Field(default=None, ge=0)
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Allow"
    suspend: bool | None = None
    successful_jobs_history_limit: Int32 | None = Field(default=None, ge=0)
    failed_jobs_history_limit: Int32 | None = Field(default=None, ge=0)


class CronJobV1Spec(AnyCronJobSpec):
    schedule: str = Field(min_length=0)
    job_template: JsonObject = Field(json_schema_extra=markers.builtin("io.k8s.api.batch.v1.JobTemplateSpec"))


class CronJobStatus(Model):
    active: list[Reference] | None = Field(
        default=None, min_length=1, max_length=10, json_schema_extra=markers.list_atomic()
    )
    last_schedule_time: datetime | None = None
    conditions: list[Condition] = Field(default_factory=list, json_schema_extra=markers.list_map("type"))


@markers.resource(f"{GROUP}/v1", "CronJob")
class CronJobV1(CustomResource):
    spec: CronJobV1Spec
    status: CronJobStatus | None = None


class CronSchedule(Model):
    minute: str | None = None
    hour: str | None = None
    day_of_month: str | None = None
    month: str | None = None
    day_of_week: str | None = None


class CronJobV2Spec(AnyCronJobSpec):
    schedule: CronSchedule


@markers.resource(f"{GROUP}/v2", "CronJob", storage=False)
class CronJobV2(CustomResource):
    spec: CronJobV2Spec
    status: CronJobStatus | None = None


def without_descriptions(schema: Any) -> Any:
    """Returns a schema without descriptions; columns keep theirs."""
    if isinstance(schema, list):
        return [without_descriptions(row) for row in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = isinstance(schema.get("description"), str) and "jsonPath" not in schema
    return {key: without_descriptions(row) for key, row in schema.items() if not (dropped and key == "description")}


def different(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """The paths where they aren't the same."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = sorted(ours.keys() | theirs.keys())
        return [found for key in keys for found in different(ours.get(key), theirs.get(key), f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [found for place, (a, b) in pairs for found in different(a, b, f"{path}[{place}]")]
    return [] if ours == theirs else [path]


# A Go struct that is a type of another struct inherits its map type; OpenAPI has defaults of pointers, which controller-gen's markers can't
# express.
KNOWN = (
    *("configMapRef", "secretRef", "configMap", "secret"),
    *("azureDisk.properties.cachingMode", "azureDisk.properties.kind", "onPodConditions.items.properties.status"),
)
# Fields that came with 1.37: the recordings are of k8s.io/api 0.36.
NEWER = (
    *("httpGet.properties.protocol", "grpc.properties.mode", "emptyDir.properties.mode", "properties.scheduling"),
    *("properties.bindMountOptions", "properties.evictionResponders", "properties.defaultUser", "properties.user"),
)


@pytest.mark.parametrize(("models", "recorded"), [((Feat,), "feats"), ((CronJobV1, CronJobV2), "cronjobs")])
def test_definitions(models: Sequence[type[Any]], recorded: str) -> None:
    theirs = json.loads((RECORDED / f"{recorded}.json").read_text())
    del theirs["metadata"]["annotations"]
    found = different(without_descriptions(crd.definition(*models)), theirs)
    endings = tuple(f"{name}.{what}" for name in KNOWN for what in ("x-kubernetes-map-type", "default"))
    assert [path for path in found if not path.endswith((*endings, *NEWER))] == []


@rbac(groups=["apps"], resources=["deployments"], verbs=["get", "list", "watch"])
@rbac(groups=["apps"], resources=["statefulsets"], verbs=["get", "list", "watch"])
@rbac(groups=["apps"], resources=["deployments"], verbs=["create", "patch"])
@rbac(groups=[""], resources=["pods", "services"], verbs=["watch", "get", "list"])
@rbac(groups=["core"], resources=["secrets"], verbs=["get", "list", "watch"])
@rbac(groups=["batch", "extensions"], resources=["jobs", "cronjobs"], verbs=["get"])
@rbac(groups=["batch"], resources=["jobs"], verbs=["delete"])
@rbac(groups=["batch"], resources=["jobs/status"], verbs=["get", "update", "patch"])
@rbac(groups=["art"], resources=["jobs"], verbs=["*"])
@rbac(groups=["art"], resources=["jobs"], verbs=["get"])
@rbac(groups=["*"], resources=["*"], verbs=["list"])
@rbac(groups=["wave"], resources=["jobs"], resource_names=["Leia", "Han"], verbs=["get"])
@rbac(groups=["wave"], resources=["jobs"], resource_names=["Han", "Leia"], verbs=["list"])
@rbac(groups=["wave"], resources=["jobs"], resource_names=["Chewie"], verbs=["list"])
@rbac(groups=["wave"], resources=["jobs"], verbs=["list"])
@rbac(groups=["cron", "jobs"], resources=["aa", "bb"], verbs=["get", "create"])
@rbac(groups=["cron"], resources=["zz"], verbs=["create", "get"])
@rbac(groups=["same"], resources=["a"], verbs=["get"])
@rbac(groups=["other"], resources=["a"], verbs=["get"])
@rbac(groups=["third"], resources=["b"], verbs=["get"])
@rbac(urls=["/metrics"], verbs=["get"])
@rbac(urls=["/healthz", "/livez"], verbs=["get"])
@rbac(urls=["/metrics"], verbs=["post"])
@rbac(groups=["apps"], namespace="system", resources=["deployments"], verbs=["get", "list"])
@rbac(groups=["apps"], namespace="system", resources=["daemonsets"], verbs=["get", "list"])
@rbac(groups=[""], namespace="other", resources=["configmaps"], verbs=["get"])
@rbac(groups=["coordination.k8s.io"], namespace="system", resources=["leases"], verbs=["get", "create", "update"])
@webhook(
    path="/mutate-v1-foo",
    mutating=True,
    groups=["example.com"],
    resources=["foos"],
    versions=["v1"],
    name="mfoo-v1.kb.io",
)
@webhook(
    path="/validate-v1-foo",
    mutating=False,
    failure_policy="ignore",
    side_effects="NoneOnDryRun",
    groups=["example.com"],
    resources=["foos", "foos/status"],
    operations=["create", "update", "delete"],
    versions=["v1", "v2"],
    name="vfoo-v1.kb.io",
    admission_review_versions=["v1", "v1beta1"],
    match_policy="exact",
    timeout_seconds=5,
)
@webhook(
    path="/mutate--v1-pod",
    mutating=True,
    groups=["core"],
    resources=["pods"],
    operations=["create"],
    versions=["v1"],
    name="apod.kb.io",
    reinvocation_policy="IfNeeded",
)
@webhook(
    path="/validate-any",
    mutating=False,
    groups=["*"],
    resources=["*"],
    operations=["*"],
    versions=["*"],
    name="vany.kb.io",
)
@webhook(
    path="/validate-a",
    mutating=False,
    groups=[""],
    resources=["pods", "services"],
    operations=["connect", "delete"],
    versions=["v1"],
    name="aaa.kb.io",
    service_name="my-svc",
    service_namespace="my-ns",
    service_port=8443,
)
@webhook(
    url="https://hooks.example.com/x",
    mutating=False,
    groups=["example.com"],
    resources=["bars"],
    operations=["create"],
    versions=["v1"],
    name="vbar.kb.io",
)
class Marked:
    """The markers of controller_gen/rbac and controller_gen/webhook."""


@pytest.mark.parametrize("recorded", ["role.yaml", "manifests.yaml"])
def test_markers(recorded: str) -> None:
    """The same bytes, after a line that says who made it."""
    made = {"role.yaml": manifests.roles, "manifests.yaml": manifests.webhooks}[recorded]([Marked])
    _, _, text = made.partition("\n")
    assert text == (RECORDED / recorded).read_text()


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ({"path": "", "name": "a.kb.io"}, "the webhook a.kb.io needs a path or a url, and not both"),
        ({"operations": ["PATCH"]}, "operation 'PATCH' is not one of CREATE, UPDATE, DELETE, CONNECT, *"),
        ({"failure_policy": "Retry"}, "failure_policy 'Retry' is not one of Fail, Ignore"),
        ({"groups": "apps"}, "groups is a list of strings, not 'apps'"),
    ],
)
def test_what_no_webhook_can_be(marker: JsonObject, message: str) -> None:
    usual = {"path": "/x", "mutating": True, "groups": [], "versions": [], "resources": [], "name": "x.kb.io"}
    with pytest.raises((ValueError, TypeError), match=message.replace("*", r"\*")):
        webhook(**{**usual, **marker})
