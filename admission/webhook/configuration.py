"""The webhooks of all configurations of a sort, in the order they are called.

Upstream: k8s.io/apiserver/pkg/admission/configuration/{mutating,validating}_webhook_manager.go, plugin/webhook/accessors.go.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from fakeapiserver.admission.policy import expressions
from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.cel import admission
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.transport.webhook import endpoint_of

if TYPE_CHECKING:
    from fakeapiserver.admission.policy.expressions import Expression
    from fakeapiserver.transport.webhook import Endpoint


class Hook(Struct, frozen=True, dict=True):
    """A webhook. `uid` is unique, also among webhooks of the same name; `spec` is as stored, with its defaults."""

    uid: str
    spec: Object
    namespace_selector: Selector
    object_selector: Selector
    version: str = NEWEST

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def configuration(self) -> str:
        return self.uid.partition("/")[0]

    @property
    def ignores_failures(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"

    @property
    def has_side_effects(self) -> bool:
        """Reports whether the webhook has side effects even in a dry run."""
        return self.spec.get("sideEffects") not in ("None", "NoneOnDryRun")

    @cached_property
    def endpoint(self) -> "Endpoint":
        return endpoint_of(self.spec["clientConfig"], self.name)

    @cached_property
    def conditions(self) -> "list[Expression]":
        return expressions.compiled_conditions(
            admission.Environment(version=self.version), self.spec.get("matchConditions") or ()
        )


def hooks_of(configurations: Iterable[Object], version: str = NEWEST) -> tuple[Hook, ...]:
    """By the names of the configurations, and in each as they are written down. `version`: Kubernetes's."""
    return tuple(
        hook
        for configuration in sorted(configurations, key=lambda obj: str(obj["metadata"]["name"]))
        for hook in _hooks(configuration, version)
    )


def _hooks(configuration: Object, version: str) -> Iterable[Hook]:
    seen: Counter[str] = Counter()
    for spec in configuration.get("webhooks") or ():
        name = spec["name"]
        uid = f"{configuration['metadata']['name']}/{name}/{seen[name]}"
        seen[name] += 1
        namespaces, objects = (
            labels.from_label_selector(spec.get(f"{what}Selector") or {}) for what in ("namespace", "object")
        )
        yield Hook(uid, spec, namespaces, objects, version)
