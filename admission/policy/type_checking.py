"""Type checks of a ValidatingAdmissionPolicy's expressions by its objects and params, for its status.

Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery.cel.admission import Environment
from fakeapiserver.apimachinery.cel.schema import Decl, declare, structs_of
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.apis.recorded import NEWEST
from fakeapiserver.languages.cel.errors import CompileError
from fakeapiserver.languages.cel.types import DYN

_MOST_KINDS: Final = 10
Spec = Mapping[str, Any]


class TypeChecker(Struct, frozen=True):
    """Checks types.

    `kinds_for` returns the kinds of a resource (an empty group is any), `schema_of` a kind's schema with all that
    it refers to, or None.
    `unique` returns numbers that distinguish the types of one kind from those of another time. `version` is Kubernetes's.
    """

    kinds_for: Callable[[str, str, str], Iterable[GroupVersionKind]]
    schema_of: Callable[[GroupVersionKind], Schema | None]
    unique: Callable[[], int]
    version: str = NEWEST

    def check(self, spec: Spec) -> list[Object]:
        """The expressionWarnings of a policy's `spec`."""
        kinds = [(kind, decl) for kind in self._kinds(spec) if (decl := self._declared(kind)) is not None]
        param_kind = _param_kind(spec)
        params = None if param_kind is None else self._declared(param_kind)
        environments = [(kind, _environment(spec, decl, params, self.version)) for kind, decl in kinds]
        warnings = []
        for i, validation in enumerate(spec.get("validations") or ()):
            for field in ("expression", "messageExpression"):
                text = validation.get(field, "")
                type_warnings = [_warning(kind, environment, text) for kind, environment in environments]
                if (text or field == "expression") and (said := [warning for warning in type_warnings if warning]):
                    warnings.append({"fieldRef": f"spec.validations[{i}].{field}", "warning": "\n".join(said)})
        return warnings

    def _kinds(self, spec: Spec) -> list[GroupVersionKind]:
        """In order of group, version and kind; not all of rules that name many."""
        kinds: set[GroupVersionKind] = set()
        for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
            matched = list(self._matched(rule))
            kinds.update(matched[:_MOST_KINDS])
            if len(matched) >= _MOST_KINDS:
                break
        return sorted(kinds)

    def _matched(self, rule: Spec) -> Iterable[GroupVersionKind]:
        groups, versions = (rule.get(key) or () for key in ("apiGroups", "apiVersions"))
        if any("*" in name for name in (*groups, *versions)):
            return
        resources = [name for name in rule.get("resources") or () if not set(name) & {"*", "/"}]
        for group in sorted(groups):
            for version in sorted(versions):
                for resource in sorted(resources):
                    yield from self.kinds_for(group, version, resource)

    def _declared(self, kind: GroupVersionKind) -> Decl | None:
        schema = self.schema_of(kind)
        return (
            None if schema is None else declare(_marked(schema), is_resource=True, name=f"{kind.kind}{self.unique()}")
        )


def _marked(schema: Schema) -> Schema:
    """Marks fields of built-in kinds, which have a format where custom resources have an extension."""
    if schema.get("format") == "int-or-string":
        return {"x-kubernetes-int-or-string": True}
    marked = dict(schema)
    if properties := schema.get("properties"):
        marked["properties"] = {key: _marked(child) for key, child in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            marked[key] = _marked(schema[key])
    return marked


def _param_kind(spec: Spec) -> GroupVersionKind | None:
    if (kind := spec.get("paramKind")) is None:
        return None
    return GroupVersionKind(*GroupVersion.parse(kind.get("apiVersion", "")), kind.get("kind", ""))


def _environment(spec: Spec, decl: Decl, params: Decl | None, version: str) -> Environment:
    types = {"object": decl.type, "oldObject": decl.type}
    structs = structs_of(decl)
    has_params = spec.get("paramKind") is not None
    if has_params:
        types["params"] = DYN if params is None else params.type
        structs |= {} if params is None else structs_of(params)
    environment = Environment(has_params, composes=True, types=types, structs=structs, version=version)
    for variable in spec.get("variables") or ():
        environment.check_variable(variable.get("name", ""), variable.get("expression", ""))
    return environment


def _warning(kind: GroupVersionKind, environment: Environment, expression: str) -> str:
    """Empty if nothing is wrong."""
    try:
        environment.check(expression)
    except CompileError as error:
        return f"{kind.group}/{kind.version}, Kind={kind.kind}: {error}\n"
    return ""
