"""The custom resource whose specs are tried: found in a scenario, and in the cluster after it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any

from msgspec import Struct, structs

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.sweep.exploring import kubernetes
from fakeapiserver.sweep.exploring.values import Schema
from fakeapiserver.sweep.scenario import Scenario, Step, applying

_FIXED = ("apiVersion", "kind", "metadata", "status")


class Subject(Struct, frozen=True):
    """A custom resource. `resource` is such as `databases.example.com`; `manifest` is what the scenario applies, `current` what the
    cluster has then, and `schema` that of its version."""

    resource: str
    namespace: str
    manifest: Object
    current: Object
    schema: Schema

    @property
    def name(self) -> str:
        name: str = self.manifest["metadata"]["name"]
        return name

    @property
    def title(self) -> str:
        """Its name in states: `databases.example.com shop/db`."""
        return " ".join((self.resource, "/".join(part for part in (self.namespace, self.name) if part)))

    @property
    def reference(self) -> str:
        """Its name for the methods of Cluster."""
        return f"{self.resource}/{self.name}"

    def manifest_of(self, changed: Object) -> Object:
        """The manifest of an object that has these fields from the beginning."""
        fields = {name: value for name, value in changed.items() if name not in _FIXED}
        return {**{name: self.manifest[name] for name in _FIXED[:3]}, **fields}

    def back(self) -> list[dict[str, Any]]:
        """The JSON patch that gives the object its first fields again."""
        return [
            {"op": "add", "path": f"/{name}", "value": value}
            for name, value in self.current.items()
            if name not in _FIXED
        ]


def beginning_of(scenario: Scenario) -> Scenario:
    """The scenario up to the first step that is neither `apply` nor `wait`. Raises ValueError if it applies nothing."""
    steps = [*takewhile(lambda step: step.applied or step.is_wait, scenario.steps)]
    if not any(step.applied for step in steps):
        raise ValueError("the scenario's first steps must apply the custom resource whose specs are to be tried")
    return with_steps(scenario, steps)


def with_steps(scenario: Scenario, steps: Sequence[Any]) -> Scenario:
    """The scenario with other steps."""
    return structs.replace(scenario, steps=steps)


def with_manifest(scenario: Scenario, old: Object, new: Object) -> Scenario:
    """The scenario with another manifest in place of one. It may wait in vain."""
    steps = [
        structs.replace(step, run=_patiently(step))
        if step.is_wait
        else applying([new if each is old else each for each in step.applied], scenario.namespace)
        for step in scenario.steps
    ]
    return with_steps(scenario, steps)


def _patiently(step: Step) -> Callable[[Cluster], object]:
    """The work of a step that waits, without an error when the time is up: other specs needn't lead to the same state."""

    def wait(cluster: Cluster) -> None:
        with suppress(TimeoutError):
            step.run(cluster)

    return wait


def find(cluster: Cluster, scenario: Scenario, wanted: str = "") -> Subject:
    """The custom resource that the scenario applies. `wanted` (`databases/db`) chooses one of several. Raises ValueError."""
    definitions = cluster.list("customresourcedefinitions")
    found = [
        _subject(cluster, obj, definition, scenario.namespace)
        for step in scenario.steps
        for obj in step.applied
        for definition in definitions
        if defines(definition, obj)
    ]
    names = {f"{each.resource.partition('.')[0]}/{each.name}": each for each in found}
    chosen = [each for name, each in names.items() if wanted in ("", name, each.reference)]
    if len(chosen) == 1:
        return chosen[0]
    if not found:
        raise ValueError("the scenario applies no custom resource: its first steps must apply the one to be tried")
    listed = ", ".join(names)
    if wanted:
        raise ValueError(f"the scenario applies no {wanted}; it applies {listed}")
    raise ValueError(f"the scenario applies several custom resources: choose one with --object: {listed}")


def defines(definition: Object, obj: Object) -> bool:
    """Reports whether an object is of the kind of a CustomResourceDefinition."""
    group = obj.get("apiVersion", "").rpartition("/")[0]
    spec = definition["spec"]
    return (spec["group"], spec["names"]["kind"]) == (group, obj.get("kind"))


def _subject(cluster: Cluster, obj: Object, definition: Object, default: str) -> Subject:
    spec, meta = definition["spec"], obj["metadata"]
    resource = f"{spec['names']['plural']}.{spec['group']}"
    namespace = (meta.get("namespace") or default) if spec["scope"] == "Namespaced" else ""
    current = cluster.get(f"{resource}/{meta['name']}", namespace=namespace or None)
    schema = _schema_of(spec, current["apiVersion"].rpartition("/")[2])
    return Subject(resource, namespace, obj, current, kubernetes.completed(schema, current))


def _schema_of(spec: Mapping[str, Any], version: str) -> Schema:
    [schema] = [each.get("schema", {}) for each in spec["versions"] if each["name"] == version]
    found: Schema = schema.get("openAPIV3Schema", {})
    return found
