"""Configurations of admission webhooks.

Upstream: pkg/registry/admissionregistration/{mutating,validating}webhookconfiguration/strategy.go,
pkg/apis/admissionregistration/v1/defaults.go.
"""

from typing import Final

from fakeapiserver.apimachinery.field import ErrorList, Path, invalid
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.registry.admissionregistration.webhook_validation import webhooks_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_STATIC_MANIFESTS: Final = "ManifestBasedAdmissionControlConfig"
_RESERVED_SUFFIX: Final = ".static.k8s.io"
_RESERVED: Final = (
    f'names ending with "{_RESERVED_SUFFIX}" are reserved for static manifest-based configurations and cannot be managed '
    "via the API"
)


class WebhookConfigurationStrategy(Strategy, kw_only=True):
    """`mutating` webhooks can be called again after others."""

    mutating: bool
    generation_counts_empties: tuple[str, ...] = ("webhooks",)

    def default(self, obj: Object, version: str) -> None:
        for webhook in obj.get("webhooks") or ():
            _default_webhook(webhook)
            if self.mutating:
                webhook.setdefault("reinvocationPolicy", "Never")

    def validate(self, obj: Object) -> ErrorList:
        return self.validate_update(obj, {}) + reserved_name_errors(obj, self.features)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return webhooks_errors(obj.get("webhooks") or (), Path("webhooks"), self.features.version)

    def warnings_on_create(self, obj: Object) -> list[str]:
        return reserved_name_warnings(obj, self.features, new=True)

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        return reserved_name_warnings(obj, self.features, new=False)

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), len(obj.get("webhooks") or ()), age(obj, now)]


def reserved_name_errors(obj: Object, features: FeatureGates) -> ErrorList:
    """The errors in the name of a new object: some names are reserved for objects of manifest files
    (upstream: pkg/apis/admissionregistration/validation/static_suffix.go)."""
    name = metadata(obj).get("name", "")
    if not features.enabled(_STATIC_MANIFESTS) or not name.endswith(_RESERVED_SUFFIX):
        return []
    return [invalid("metadata.name", name, _RESERVED)]


def reserved_name_warnings(obj: Object, features: FeatureGates, *, new: bool) -> list[str]:
    """Warns of a reserved name. A new object can have such a name only while the names aren't reserved yet."""
    if not features.at_least("v1.36") or (new and features.enabled(_STATIC_MANIFESTS)):
        return []
    return [f"metadata.name: {_RESERVED}"] if metadata(obj).get("name", "").endswith(_RESERVED_SUFFIX) else []


def _default_webhook(webhook: Object) -> None:
    webhook.setdefault("failurePolicy", "Fail")
    default_matching(webhook)
    webhook.setdefault("timeoutSeconds", 10)
    default_scopes(webhook.get("rules"))
    if (service := (webhook.get("clientConfig") or {}).get("service")) is not None:
        service.setdefault("port", 443)


def default_matching(obj: Object) -> None:
    """Sets the defaults of the fields that webhooks and policies match by, in place."""
    obj.setdefault("matchPolicy", "Equivalent")
    obj.setdefault("namespaceSelector", {})
    obj.setdefault("objectSelector", {})


def default_scopes(rules: list[Object] | None) -> None:
    for rule in rules or ():
        rule.setdefault("scope", "*")
