"""The match conditions of an authorization webhook: CEL expressions on the spec of its SubjectAccessReview.

Upstream: k8s.io/apiserver/pkg/authorization/cel/{compile,matcher}.go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fakeapiserver.apimachinery.cel.typed import compile_typed
from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.languages.cel.program import Program
from fakeapiserver.languages.cel.types import BOOL, STRING, list_of, map_of, struct
from fakeapiserver.languages.cel.versions import NEWEST

_STRINGS: Final = list_of(STRING)
_SPEC: Final = "kubernetes.SubjectAccessReviewSpec"
_SELECTOR: Final = {"rawSelector": STRING, "requirements": list_of(struct("kubernetes.SelectorRequirement"))}
_TEXTS: Final = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
_DECLARED: Final = Declared(
    {"request": struct(_SPEC)},
    {
        _SPEC: {
            "resourceAttributes": struct("kubernetes.ResourceAttributes"),
            "nonResourceAttributes": struct("kubernetes.NonResourceAttributes"),
            "user": STRING,
            "groups": _STRINGS,
            "extra": map_of(STRING, _STRINGS),
            "uid": STRING,
        },
        "kubernetes.ResourceAttributes": {
            **dict.fromkeys(_TEXTS, STRING),
            "fieldSelector": struct("kubernetes.FieldSelectorAttributes"),
            "labelSelector": struct("kubernetes.LabelSelectorAttributes"),
        },
        "kubernetes.NonResourceAttributes": {"path": STRING, "verb": STRING},
        "kubernetes.FieldSelectorAttributes": _SELECTOR,
        "kubernetes.LabelSelectorAttributes": _SELECTOR,
        "kubernetes.SelectorRequirement": {"key": STRING, "operator": STRING, "values": _STRINGS},
    },
)


class MatchConditionError(Exception):
    """Some conditions could not be evaluated, and none said no."""


class MatchConditions:
    """Conditions that must all be true. Compiled on creation, in the CEL of a Kubernetes version, which raises ValueError for the
    first invalid one."""

    def __init__(self, expressions: Sequence[str], version: str = NEWEST) -> None:
        self._programs = [(expression, compile_condition(expression, version)) for expression in expressions]

    def match(self, spec: Mapping[str, Any]) -> bool:
        """Reports whether a review with this spec is to be asked. MatchConditionError."""
        if not self._programs:
            return True
        request, errors = _complete(spec), list[str]()
        for expression, program in self._programs:
            result = program.evaluate({"request": request})
            if result.error:
                errors.append(f"cel evaluation error: expression '{expression}' resulted in error: {result.error}")
            elif not result.value:
                return False
        if errors:
            raise MatchConditionError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return True


def compile_condition(expression: str, version: str = NEWEST) -> Program:
    """ValueError with upstream's text."""
    return compile_typed(expression, replace(_DECLARED, version=version), BOOL)


def _complete(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with every text attribute, as expressions may ask for any of them."""
    attributes = {
        "user": spec.get("user", ""),
        "groups": list(spec.get("groups") or ()),
        "uid": spec.get("uid", ""),
        "extra": dict(spec.get("extra") or {}),
    }
    if (resource := spec.get("resourceAttributes")) is not None:
        texts = {name: resource.get(name, "") for name in _TEXTS}
        selectors = {name: resource[name] for name in ("fieldSelector", "labelSelector") if name in resource}
        attributes["resourceAttributes"] = {**texts, **{name: _selector(selectors[name]) for name in selectors}}
    if (other := spec.get("nonResourceAttributes")) is not None:
        attributes["nonResourceAttributes"] = {"path": other.get("path", ""), "verb": other.get("verb", "")}
    return attributes


def _selector(selector: Mapping[str, Any]) -> dict[str, Any]:
    requirements = [{"values": [], **requirement} for requirement in selector["requirements"]]
    return {"requirements": requirements}
