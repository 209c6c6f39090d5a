"""The variables of expressions in admission webhooks and policies.

Upstream: k8s.io/apiserver/pkg/admission/plugin/cel/{compile,composition}.go, k8s.io/apiserver/pkg/cel/mutation
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.cel.typed import compile_typed
from fakeapiserver.languages.cel.authorizer import AUTHORIZER, RESOURCE_CHECK
from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.languages.cel.declarations import FUNCTIONS, Overload
from fakeapiserver.languages.cel.errors import CompileError
from fakeapiserver.languages.cel.program import Program, check
from fakeapiserver.languages.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, Type, list_of, map_of, struct
from fakeapiserver.languages.cel.versions import NEWEST

_STRINGS: Final = list_of(STRING)
_TEXTS: Final = map_of(STRING, STRING)
_KIND: Final = struct("kubernetes.GroupVersionKind")
_RESOURCE: Final = struct("kubernetes.GroupVersionResource")
_VARIABLES: Final = "kubernetes.variables"
_STRUCTS: Final[Mapping[str, Mapping[str, Type]]] = {
    "kubernetes.AdmissionRequest": {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": struct("kubernetes.UserInfo"),
        "dryRun": BOOL,
        "options": DYN,
    },
    "kubernetes.GroupVersionKind": dict.fromkeys(("group", "version", "kind"), STRING),
    "kubernetes.GroupVersionResource": dict.fromkeys(("group", "version", "resource"), STRING),
    "kubernetes.UserInfo": {"username": STRING, "uid": STRING, "groups": _STRINGS, "extra": map_of(STRING, _STRINGS)},
    "kubernetes.Namespace": {
        "metadata": struct("kubernetes.NamespaceMetadata"),
        "spec": struct("kubernetes.NamespaceSpec"),
        "status": struct("kubernetes.NamespaceStatus"),
    },
    "kubernetes.NamespaceMetadata": {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
        "finalizers": _STRINGS,
    },
    "kubernetes.NamespaceSpec": {"finalizers": _STRINGS},
    "kubernetes.NamespaceStatus": {"conditions": list_of(struct("kubernetes.NamespaceCondition")), "phase": STRING},
    "kubernetes.NamespaceCondition": {
        **dict.fromkeys(("status", "type", "message", "reason"), STRING),
        "lastTransitionTime": TIMESTAMP,
    },
}
_ALWAYS: Final[Mapping[str, Type]] = {
    "object": DYN,
    "oldObject": DYN,
    "namespaceObject": struct("kubernetes.Namespace"),
    "request": struct("kubernetes.AdmissionRequest"),
}
_PATCH: Final = "JSONPatch"
JSON_PATCH: Final = list_of(struct(_PATCH))
OBJECT: Final = struct("Object")
_PATCH_FUNCTIONS: Final = {
    **FUNCTIONS,
    "jsonpatch.escapeKey": (Overload("string_jsonpatch_escapeKey_string", False, (STRING,), STRING, frozenset()),),
}
_AUTHORIZER: Final = {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}


class Environment(Struct):
    """Compiles the expressions of one webhook or policy. `has_params`: it has a kind of parameters; `composes`: it may have
    variables, which later expressions name; `version`: the Kubernetes version whose CEL compiles them."""

    has_params: bool = False
    composes: bool = False
    # What some variables are known to be, beyond being anything; and the structs among them.
    types: Mapping[str, Type] = field(default_factory=dict)
    structs: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    version: str = NEWEST
    _variables: dict[str, Type] = field(default_factory=dict)

    def compile(
        self, expression: str, *wanted: Type, has_authorizer: bool = True, makes_patches: bool = False
    ) -> Program:
        """`makes_patches`: it may make JSONPatch and Object. ValueError with upstream's text."""
        names = self._names() | (_AUTHORIZER if has_authorizer else {})
        if not makes_patches:
            return compile_typed(expression, Declared(names, self._structs(), version=self.version), *wanted)
        structs = {**self._structs(), _PATCH: {**dict.fromkeys(("op", "path", "from"), STRING), "value": DYN}}
        declared = Declared(names, structs, _PATCH_FUNCTIONS, frozenset({_PATCH, OBJECT.name}), version=self.version)
        return compile_typed(expression, declared, *wanted)

    def check(self, expression: str) -> Type:
        """An expression's type, whatever it may be; it isn't going to be evaluated. CompileError."""
        tree, _ = check(
            expression, Declared(self._names() | {"authorizer": AUTHORIZER}, self._structs(), version=self.version)
        )
        return tree.type

    def check_variable(self, name: str, expression: str) -> None:
        """From here on the variable is known, as anything if its expression is wrong."""
        try:
            self._variables[name] = _seen(self.check(expression))
        except CompileError:
            self._variables[name] = DYN

    def _names(self) -> dict[str, Type]:
        names = {**_ALWAYS, **({"params": DYN} if self.has_params else {})}
        if self.composes:
            names["variables"] = struct(_VARIABLES)
        return {**names, **self.types}

    def _structs(self) -> Mapping[str, Mapping[str, Type]]:
        return {**_STRUCTS, **self.structs, _VARIABLES: self._variables} if self.composes else _STRUCTS

    def add_variable(self, name: str, expression: str) -> Program:
        """Compiled, and from here on known. ValueError; it is known then too, as anything."""
        try:
            program = self.compile(expression)
        except ValueError:
            self._variables[name] = DYN
            raise
        self._variables[name] = _seen(program.type)
        return program


def _seen(t: Type) -> Type:
    """A variable's type as other expressions see it: structs and optionals are anything to them."""
    if t.kind in ("list", "map"):
        return t._replace(params=tuple(map(_seen, t.params)))
    return DYN if t.kind in ("struct", "opaque", "type", "param", "error") else t
