"""The rules of a CustomResourceDefinition, when it is written: do they compile, and may they cost that much?

Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,cel_validation}.go
"""

from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fakeapiserver.apimachinery.cel.rules import RULES, Rule, compile_rules, declare_self
from fakeapiserver.apimachinery.cel.schema import MAX_REQUEST, is_declared
from fakeapiserver.apimachinery.field import ErrorList, Path, forbidden, internal, invalid
from fakeapiserver.apimachinery.schema.go_schema import go_rules
from fakeapiserver.apimachinery.schema.resolve import Schema
from fakeapiserver.languages.cel.versions import NEWEST

_RULE_LIMIT: Final = 10_000_000
_TOTAL_LIMIT: Final = 100_000_000
_MAX: Final = (1 << 64) - 1


class Findings(Struct):
    """The results for a version of a definition: errors, the cost of all rules, and the most expensive ones."""

    errors: ErrorList = field(default_factory=list)
    total: int = 0
    expensive: list[tuple[int, Path]] = field(default_factory=list)

    def observe(self, path: Path, cost: int) -> None:
        self.total = min(self.total + cost, _MAX)
        if cost >= _TOTAL_LIMIT // 100:
            self.expensive = sorted([*self.expensive, (cost, path)], key=lambda item: -item[0])[:4]

    def total_errors(self, path: Path) -> ErrorList:
        if self.total <= _TOTAL_LIMIT:
            return []
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        errors = [forbidden(at, detail) for _, at in self.expensive]
        return [*errors, forbidden(path, _cost_message(name, self.total, _TOTAL_LIMIT))]


class Scope(Struct, frozen=True):
    """The position of a schema.

    `cardinality`: how often its values can occur in an object, None without a limit; `uncorrelated`: the
    enclosing schema whose values can't
    be matched with the old ones; `has_rules`, `undeclared`: an enclosing schema has rules, and below it one could
    not be declared, so that
    nothing inside has a type; `version`: the Kubernetes version whose CEL compiles the rules.
    """

    findings: Findings
    is_resource: bool = True
    cardinality: int | None = 1
    uncorrelated: Path | None = None
    has_rules: bool = False
    undeclared: bool = False
    version: str = NEWEST

    def below(self, schema: Schema, sub: Schema, path: Path, *, is_item: bool, is_property: bool) -> "Scope":
        """The scope of a schema inside."""
        uncorrelated = self.uncorrelated
        if (uncorrelated is None and is_item and schema.get("x-kubernetes-list-type") != "map") or (
            uncorrelated is None and is_property and schema.get("x-kubernetes-map-type", "granular") not in _MAP_TYPES
        ):
            uncorrelated = path
        has_rules = self.has_rules or bool(schema.get(RULES))
        return replace(
            self,
            has_rules=has_rules,
            undeclared=self.undeclared or (has_rules and not is_declared(schema, is_resource=self.is_resource)),
            is_resource=bool(sub.get("x-kubernetes-embedded-resource")),
            cardinality=self._times(schema),
            uncorrelated=uncorrelated,
        )

    def _times(self, schema: Schema) -> int | None:
        limit: int | None = 1
        if schema.get("type") == "object" and schema.get("additionalProperties") is not None:
            limit = schema.get("maxProperties")
        elif schema.get("type") == "array":
            limit = schema.get("maxItems")
        return None if self.cardinality is None or limit is None else _product(self.cardinality, max(limit, 0))

    def check(self, schema: Schema, path: Path) -> None:
        """The rules of a schema that is right otherwise."""
        if not schema.get(RULES):
            return
        decl = None if self.undeclared else declare_self(schema, is_resource=self.is_resource)
        at = path.child(RULES)
        if decl is None:
            why = "unable to convert structural schema to CEL declarations"
            detail = f"internal error: failed to construct type information for x-kubernetes-validations rules: {why}"
            self.findings.errors.append(internal(at, detail))
            return
        most = MAX_REQUEST // (decl.min_size + 1) if self.cardinality is None else self.cardinality
        for i, rule in enumerate(compile_rules(schema, decl, self.version, with_costs=True)):
            self._check_rule(rule, at.index(i), most)

    def _check_rule(self, rule: Rule, path: Path, most: int) -> None:
        findings, errors = self.findings, self.findings.errors
        cost = _product(rule.max_cost, most)
        at, message_at = path.child("rule"), path.child("messageExpression")
        if cost > _RULE_LIMIT:
            errors.append(forbidden(at, _cost_message("estimated rule cost", cost, _RULE_LIMIT)))
        findings.observe(at, cost)
        shown: Any = go_rules([rule.source])[0]
        if rule.error:
            errors.append(invalid(at, shown, rule.error))
        if rule.message_error:
            errors.append(invalid(message_at, shown, rule.message_error))
        elif rule.message is not None:
            if rule.message_max_cost > _RULE_LIMIT:
                text = _cost_message("estimated messageExpression cost", rule.message_max_cost, _RULE_LIMIT)
                errors.append(forbidden(message_at, text))
            findings.observe(message_at, rule.message_max_cost)
        if rule.uses_old_self:
            if self.uncorrelated is not None:
                where = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {self.uncorrelated}"
                errors.append(invalid(at, rule.source["rule"], where))
        elif (optional := rule.source.get("optionalOldSelf")) is not None:
            detail = "may not be set if oldSelf is not used in rule"
            errors.append(invalid(path.child("optionalOldSelf"), optional, detail))


_MAP_TYPES: Final = ("granular", "atomic")


def _product(one: int, other: int) -> int:
    return min(one * other, _MAX)


def _cost_message(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    if factor > 100:
        shown = "more than 100x"
    advice = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
    return f"{name} exceeds budget by factor of {shown} ({advice})"
