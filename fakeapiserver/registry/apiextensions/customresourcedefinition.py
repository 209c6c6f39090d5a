"""CustomResourceDefinitions: defaults, the status of a new one, its validation, and its two-step end.

Upstream: k8s.io/apiextensions-apiserver/pkg/{apis/apiextensions/v1/defaults.go,registry/customresourcedefinition}.
"""

from collections.abc import Iterator
from typing import Any, Final

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.names import name_is_dns_subdomain
from fakeapiserver.apimachinery.schema import default_rules
from fakeapiserver.apimachinery.schema.formats import is_known_format
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.registry.apiextensions import definition_validation, object_meta
from fakeapiserver.registry.generic.deletion import Deletion
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.strategy_facts import NameFunction

# The time of a definition without one.
_ZERO_TIME: Final = "0001-01-01T00:00:00Z"
FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"


class CustomResourceDefinitionStrategy(Strategy, kw_only=True):
    def default(self, obj: Object, version: str) -> None:
        spec = obj.setdefault("spec", {})
        definition_names = spec.setdefault("names", {})
        kind = definition_names.get("kind", "")
        if not definition_names.get("singular"):
            definition_names["singular"] = kind.lower()
        if not definition_names.get("listKind") and kind:
            definition_names["listKind"] = kind + "List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        webhook = spec["conversion"].get("webhook") or {}
        if webhook.get("clientConfig") is None and webhook.get("conversionReviewVersions") is None:
            # Upstream's own form of a definition has these two without the webhook around them.
            spec["conversion"].pop("webhook", None)
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)
        if not (obj.get("status") or {}).get("storedVersions"):
            _remember_storage_version(obj)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}
        _remember_storage_version(obj)
        _coerce_defaults(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        _remember_storage_version(obj)
        _coerce_defaults(obj)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Keeps the spec; metadata may be changed along with the status."""
        obj["spec"] = old["spec"]

    def begin_deletion(self, obj: Object, options: Deletion, now: float) -> None:
        """Marks a definition, whose finalizer keeps it until its instances are deleted."""
        meta = obj["metadata"]
        meta["deletionTimestamp"] = rfc3339(now)
        if FINALIZER not in meta.get("finalizers", ()):
            meta["finalizers"] = [*meta.get("finalizers", ()), FINALIZER]
        message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        set_condition(obj, "Terminating", "True", "InstanceDeletionPending", message, now)

    def name_rule(self, obj: Object) -> NameFunction:
        expected = f"{obj['spec']['names'].get('plural', '')}.{obj['spec'].get('group', '')}"

        def rule(name: str, prefix: bool) -> list[str]:
            problems = name_is_dns_subdomain(name, prefix)
            return problems if name == expected else [*problems, 'must be spec.names.plural+"."+spec.group']

        return rule

    def validate(self, obj: Object) -> ErrorList:
        return definition_validation.validate_definition(obj, object_meta.object_meta().decode, self.features.version)

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return definition_validation.validate_definition_update(
            obj, old, object_meta.object_meta().decode, self.features.version
        )

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return definition_validation.validate_status(obj)

    def table_row(self, obj: Object, now: float) -> Cells:
        meta, spec = metadata(obj), obj.get("spec") or {}
        name, created = meta.get("name", ""), meta.get("creationTimestamp") or _ZERO_TIME
        if not self.features.at_least("v1.37"):
            return [name, created]
        versions = sorted(_version_cell(version) for version in spec.get("versions") or () if version.get("served"))
        names = spec.get("names") or {}
        conditions = (obj.get("status") or {}).get("conditions") or ()
        established = any((row.get("type"), row.get("status")) == ("Established", "True") for row in conditions)
        return [
            name,
            spec.get("scope", ""),
            ",".join(versions),
            created,
            spec.get("group", ""),
            names.get("kind", ""),
            ",".join(names.get("shortNames") or ()),
            established,
        ]

    def warnings_on_create(self, obj: Object) -> list[str]:
        return [f"unrecognized format {go_quote(name)}" for name in _unknown_formats(obj)]

    def warnings_on_update(self, obj: Object, old: Object) -> list[str]:
        if obj["spec"] == old["spec"]:
            return []
        known = set(_unknown_formats(old))
        return [f"unrecognized format {go_quote(name)}" for name in _unknown_formats(obj) if name not in known]


def _version_cell(version: Object) -> str:
    name = str(version.get("name", ""))
    return f"{name}(storage)" if version.get("storage") else name


def _coerce_defaults(obj: Object) -> None:
    for version in obj["spec"].get("versions") or ():
        if schema := (version.get("schema") or {}).get("openAPIV3Schema"):
            default_rules.coerce_defaults(schema, object_meta.object_meta().decode)


def _unknown_formats(obj: Object) -> list[str]:
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in obj["spec"].get("versions") or ()]
    warnings = [
        schema["format"]
        for top in schemas
        for schema in _schemas(top)
        if schema.get("format") and not is_known_format(schema["format"], schema.get("type", ""))
    ]
    return list(dict.fromkeys(warnings))


def _schemas(schema: Any) -> Iterator[Schema]:
    """A schema and all in it, in the order of upstream's SchemaHas."""
    if not isinstance(schema, dict):
        return
    yield schema
    items = schema.get("items")
    inner = items if isinstance(items, list) else [items]
    for key in ("allOf", "anyOf", "oneOf"):
        inner = [*inner, *schema.get(key, ())]
    inner += [schema.get("not"), *schema.get("properties", {}).values(), schema.get("additionalProperties")]
    for sub in inner:
        yield from _schemas(sub)


def _remember_storage_version(obj: Object) -> None:
    status: dict[str, Any] = dict(obj.get("status") or {})
    known = list(status.get("storedVersions") or ())
    stored = next((version for version in obj["spec"].get("versions") or () if version.get("storage")), None)
    if stored is not None and stored.get("name", "") not in known:
        known.append(stored.get("name", ""))
    status["storedVersions"] = known or None
    obj["status"] = status


def condition(obj: Object, kind: str) -> str | None:
    """A condition's status, None when the definition doesn't have it yet."""
    rows = (obj.get("status") or {}).get("conditions") or ()
    return next((row["status"] for row in rows if row["type"] == kind), None)


def set_condition(obj: Object, kind: str, status: str, reason: str, message: str, now: float) -> None:
    """Adds or changes one condition; the transition time moves only with the status. `obj` gets a new status."""
    conditions = [dict(condition) for condition in (obj.get("status") or {}).get("conditions") or ()]
    fresh = {"type": kind, "status": status, "lastTransitionTime": rfc3339(now), "reason": reason, "message": message}
    for i, condition in enumerate(conditions):
        if condition["type"] == kind:
            if condition["status"] == status:
                fresh["lastTransitionTime"] = condition["lastTransitionTime"]
            conditions[i] = fresh
            break
    else:
        conditions.append(fresh)
    obj["status"] = {**(obj.get("status") or {}), "conditions": conditions}
