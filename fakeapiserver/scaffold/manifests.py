"""The manifests that follow from a project's code: definitions, roles, webhook configurations.

Upstream: sigs.k8s.io/controller-tools/pkg/{crd,rbac,webhook}, `make manifests` of kubebuilder's projects.
"""

import importlib
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import yaml

from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.controller_runtime.markers import RESOURCE, RULES, WEBHOOKS, Rule, WebhookMarker, noted
from fakeapiserver.controller_runtime.scheme import gvk_for
from fakeapiserver.scaffold import crd
from fakeapiserver.scaffold.project import Project

__all__ = [
    "Json",
    "Words",
    "differences",
    "generate",
    "roles",
    "webhooks",
    "write",
]

Json = dict[str, Any]
Words = tuple[str, ...]
_HEADER: Final = "# Made by `fakeapiserver manifests` from the code: change that, not this.\n"
_ROLE: Final = "manager-role"


def generate(folder: Path) -> Mapping[Path, str]:
    """Returns the generated files by path within the project.

    Raises ValueError with one sentence, ImportError for code that can't be imported.
    """
    project = Project.read(folder)
    classes = _classes(folder, project.package)
    manifests: dict[Path, str] = {}
    crds = Path("config/crd")
    for kind, models in _kinds(classes).items():
        definition = crd.definition(*models)
        if (resource := project.resource(kind)) is not None and resource.conversion:
            definition["spec"]["conversion"] = _conversion()
        plural = definition["spec"]["names"]["plural"]
        manifests[crds / "bases" / f"{kind.group}_{plural}.yaml"] = _text(definition)
    if bases := sorted(str(path.relative_to(crds)) for path in manifests):
        kustomization: Json = {"resources": bases}
        if any(row.conversion for row in project.resources):
            kustomization["configurations"] = ["kustomizeconfig.yaml"]
        manifests[crds / "kustomization.yaml"] = _text(kustomization)
    manifests[Path("config/rbac/role.yaml")] = roles(classes)
    if any(noted(item, WEBHOOKS) for item in classes):
        manifests[Path("config/webhook/manifests.yaml")] = webhooks(classes)
    return manifests


def differences(folder: Path) -> Sequence[Path]:
    """The files that aren't as the code wants them. Raises as `generate`."""
    wanted = generate(folder)
    changed = [path for path, text in wanted.items() if not _is(folder / path, text)]
    bases = folder / "config/crd/bases"
    extra = [path.relative_to(folder) for path in bases.glob("*.yaml") if path.relative_to(folder) not in wanted]
    return sorted([*changed, *extra])


def write(folder: Path) -> Sequence[Path]:
    """Brings the files up to date; those that changed. Raises as `generate`."""
    changed = differences(folder)
    wanted = generate(folder)
    for path in changed:
        target = folder / path
        if path in wanted:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(wanted[path], encoding="utf-8")
        else:
            target.unlink()
    return changed


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def _classes(folder: Path, package: str) -> Sequence[type[Any]]:
    """Every class that a module of the project defines, in the modules' order. ValueError, saying where, for a module that can't be
    imported."""
    # a copy: another thread may import something meanwhile
    for name in [name for name in [*sys.modules] if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]  # another project's, or as it was before it was changed
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder.resolve()))
    writes, sys.dont_write_bytecode = (
        sys.dont_write_bytecode,
        True,
    )  # a change within the same second would go unnoticed
    try:
        root = importlib.import_module(package)
        modules = [root]
        for row in pkgutil.walk_packages(root.__path__, f"{package}."):
            if not row.name.endswith("__main__"):
                modules.append(importlib.import_module(row.name))
    except (Exception, SystemExit) as error:
        raise ValueError(_where(folder, error)) from error
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(folder.resolve()))
    return [cls for module in modules for cls in _defined(module)]


def _where(folder: Path, error: BaseException) -> str:
    """`my_operator/setup.py:3: NameError: name 'x' is not defined`."""
    words = " ".join(str(error).split())
    if isinstance(error, SyntaxError) and error.filename:
        path, line = Path(error.filename), error.lineno or 0
        words = error.msg
    else:
        frames = [row for row in traceback.extract_tb(error.__traceback__) if _within(folder, Path(row.filename))]
        if not frames:
            return f"{type(error).__name__}: {words}"
        path, line = Path(frames[-1].filename), frames[-1].lineno or 0
    place = path.resolve().relative_to(folder.resolve()) if _within(folder, path) else path
    return f"{place}:{line}: {type(error).__name__}: {words}"


def _within(folder: Path, path: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _defined(module: ModuleType) -> Iterable[type[Any]]:
    return (cls for cls in vars(module).values() if isinstance(cls, type) and cls.__module__ == module.__name__)


def _kinds(classes: Iterable[type[Any]]) -> Mapping[GroupKind, list[type[Any]]]:
    kinds: dict[GroupKind, list[type[Any]]] = {}
    for model in classes:
        if noted(model, RESOURCE) is not None:
            kinds.setdefault(gvk_for(model).group_kind, []).append(model)
    return kinds


def roles(classes: Iterable[type[Any]]) -> str:
    """A ClusterRole, and a Role for each namespace that `@rbac` names (upstream: GenerateRoles in pkg/rbac/parser.go)."""
    rules: list[Rule] = [rule for item in classes for rule in noted(item, RULES) or ()]
    documents = []
    for namespace in sorted({rule.namespace for rule in rules} or {""}):
        mine = [rule for rule in rules if rule.namespace == namespace]
        metadata = {"name": _ROLE, **({"namespace": namespace} if namespace else {})}
        kind = "Role" if namespace else "ClusterRole"
        made = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata}
        documents.append({**made, "rules": _merged(mine)})
    return _text(*documents)


def _merged(rules: Sequence[Rule]) -> list[Json]:
    """Rules that differ in one thing only are one: first in their verbs, then in their resources, their groups, their URLs. As
    upstream's, but no verb is lost where two of those become the same."""
    verbs: dict[_Key, frozenset[str]] = {}
    for rule in rules:
        groups = _words("" if group == "core" else group for group in rule.groups)
        for resource in rule.resources or (None,):
            resources = () if resource is None else (resource,)
            key = _Key(groups, resources, _words(rule.resource_names), _words(rule.urls))
            verbs[key] = verbs.get(key, frozenset()) | frozenset(rule.verbs)
    for part in ("resources", "groups", "urls"):
        verbs = _joined(verbs, part)
    made = []
    for key in sorted(verbs, key=str):
        row = {
            "apiGroups": [*key.groups],
            "nonResourceURLs": [*key.urls],
            "resourceNames": [*key.names],
            "resources": [*key.resources],
            "verbs": ["*"] if "*" in verbs[key] else sorted(verbs[key]),
        }
        made.append({name: words for name, words in row.items() if words})
    return made


class _Key(NamedTuple):
    groups: Words
    resources: Words
    names: Words
    urls: Words

    def __str__(self) -> str:
        return " + ".join("&".join(words) for words in self)


def _words(words: Iterable[str]) -> Words:
    return tuple(sorted(set(words)))


def _joined(verbs: Mapping[_Key, frozenset[str]], part: str) -> dict[_Key, frozenset[str]]:
    """Rules that are equal but for one part of their keys become one."""
    parts: dict[tuple[_Key, frozenset[str]], set[str]] = {}
    for key, allowed in verbs.items():
        parts.setdefault((key._replace(**{part: ()}), allowed), set()).update(getattr(key, part))
    joined: dict[_Key, frozenset[str]] = {}
    for (key, allowed), words in parts.items():
        whole = key._replace(**{part: _words(words)})
        joined[whole] = joined.get(whole, frozenset()) | allowed
    return joined


def webhooks(classes: Iterable[type[Any]]) -> str:
    """Returns the webhook configurations for the classes with `@webhook` (upstream: pkg/webhook/parser.go)."""
    hooks: list[WebhookMarker] = [hook for item in classes for hook in noted(item, WEBHOOKS) or ()]
    documents = []
    for sort, mutating in (("Mutating", True), ("Validating", False)):
        mine = sorted((hook for hook in hooks if hook.mutating is mutating), key=lambda hook: hook.name)
        if mine:
            documents.append(
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": f"{sort}WebhookConfiguration",
                    "metadata": {"name": f"{sort.lower()}-webhook-configuration"},
                    "webhooks": [_webhook(hook) for hook in mine],
                }
            )
    return _text(*documents)


def _webhook(hook: WebhookMarker) -> Json:
    service: Json = {"name": hook.service_name, "namespace": hook.service_namespace, "path": hook.path}
    if hook.service_port is not None:
        service["port"] = hook.service_port
    made: Json = {
        "admissionReviewVersions": [*hook.admission_review_versions],
        "clientConfig": {"url": hook.url} if hook.url else {"service": service},
        "failurePolicy": hook.failure_policy,
        "matchPolicy": hook.match_policy,
        "name": hook.name,
        "reinvocationPolicy": hook.reinvocation_policy,
        "rules": [
            {
                "apiGroups": ["" if group == "core" else group for group in hook.groups],
                "apiVersions": [*hook.versions],
                "operations": [*hook.operations],
                "resources": [*hook.resources],
            }
        ],
        "sideEffects": hook.side_effects,
        "timeoutSeconds": hook.timeout_seconds,
    }
    return {key: value for key, value in made.items() if value not in ("", None)}


def _conversion() -> Json:
    service = {"name": "webhook-service", "namespace": "system", "path": "/convert"}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}}
    return {"strategy": "Webhook", "webhook": webhook}


def _text(*documents: Json) -> str:
    """Returns YAML as Go writes it:

    keys in order, and strings in double quotes that would be another type without them.
    """
    dumped = yaml.dump_all(documents, Dumper=_Dumper, explicit_start=True, width=2**31)
    return _HEADER + dumped


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    tag: str = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return dumper.represent_scalar(_STRING, text, style='"' if tag.removeprefix(_CORE) in _NO_STRINGS else None)


_CORE: Final = "tag:yaml.org,2002:"
_STRING: Final = f"{_CORE}str"
_NO_STRINGS: Final = ("null", "bool", "int", "float", "timestamp", "merge")
_Dumper.add_representer(str, _string)
