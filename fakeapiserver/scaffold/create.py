"""`init`, `create api` and `create webhook`: what they write.

Upstream: sigs.k8s.io/kubebuilder/pkg/plugins/golang/v4.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from fakeapiserver.scaffold import manifests
from fakeapiserver.scaffold.project import FILE, Project, ProjectResource
from fakeapiserver.scaffold.render import insert, write_tree


def init(folder: Path, domain: str, repo: str) -> Sequence[Path]:
    """A new project in `folder`. `repo` may be a URL's path: the last word is the name. ValueError with one sentence."""
    name = repo.rstrip("/").rpartition("/")[2] or folder.resolve().name
    project = Project(domain, re.sub(r"[^a-z0-9.-]", "-", name.lower()))
    if (folder / FILE).exists():
        raise ValueError(f"{folder} holds a project already: `fakeapiserver create api` adds to it")
    folder.mkdir(parents=True, exist_ok=True)
    project.write(folder)
    written = write_tree("init", folder, _values(project), {"package": project.package})
    return [Path(FILE), *written, *manifests.write(folder)]


def create_api(folder: Path, wanted: ProjectResource, *, controller: bool, resource: bool) -> Sequence[Path]:
    """A version of a kind, with its controller and their tests. ValueError with one sentence."""
    project = Project.read(folder)
    same_kind = [row for row in project.resources if (row.group, row.kind) == (wanted.group, wanted.kind)]
    known = next((row for row in same_kind if row.version == wanted.version), None)
    if resource and known is not None:
        raise ValueError(f"{wanted.kind} {wanted.version} is there already: edit {_module_path(project, known, 'api')}")
    if not resource and known is None:
        raise ValueError(f"there is no {wanted.kind} {wanted.version} to control: leave --resource=false out")
    wanted.controller = controller
    values = _values(project, wanted, storage=not same_kind)
    names = {
        "package": project.package,
        "version": wanted.version,
        "module": _module(wanted),
        "sample": _sample(wanted),
    }
    written = []
    if resource:
        written += write_tree("api/package/api", folder / project.package / "api", values, names)
        written = [Path(project.package, "api", path) for path in written]
        sample = write_tree("api/config/samples", folder / "config/samples", values, names)
        _add_resource(folder / "config/samples/kustomization.yaml", sample[0].name if sample else "")
        written += [Path("config/samples", path) for path in sample]
        project.resources.append(wanted)
    else:
        assert known is not None
        known.controller = True
    if controller:
        made = write_tree("api/package/controllers", folder / project.package / "controllers", values, names)
        written += [Path(project.package, "controllers", path) for path in made]
        tests = write_tree("api/tests", folder / "tests", values, names)
        written += [Path("tests", path) for path in tests]
        module = _module(wanted)
        _register(
            folder,
            project,
            f"from {project.package}.controllers import {module}",
            "controllers",
            f"{module}.setup_with_manager(manager)",
        )
    project.write(folder)
    return [*written, *manifests.write(folder)]


def create_webhook(
    folder: Path, wanted: ProjectResource, *, defaulting: bool, validation: bool, conversion: bool, spoke: str
) -> Sequence[Path]:
    """Webhooks of a kind that is there. `spoke`: the other version, for conversion. ValueError with one sentence."""
    project = Project.read(folder)
    if not (defaulting or validation or conversion):
        raise ValueError("say what the webhook is for: --defaulting, --programmatic-validation or --conversion")
    found = [row for row in project.resources if (row.group, row.kind) == (wanted.group, wanted.kind)]
    known = next((row for row in found if row.version == wanted.version), None)
    if known is None:
        raise ValueError(f"there is no {wanted.kind} {wanted.version}: `fakeapiserver create api` it first")
    others = [row.version for row in found if row is not known]
    if conversion and (spoke or "") not in others:
        spoke = spoke or (others[0] if len(others) == 1 else "")
        if spoke not in others:
            raise ValueError(
                f"--conversion needs another version of {wanted.kind}, named by --spoke: "
                f"there {'is none' if not others else 'are ' + ', '.join(others)}"
            )
    values = {**_values(project, known, storage=True), "hub": known.version, "spoke": spoke}
    module = _module(known)
    names = {"package": project.package, "module": module, "conversion": f"{module}_conversion"}
    flags = {
        "defaulting": defaulting,
        "validation": validation,
        "both": defaulting and validation,
        "only_defaulting": defaulting and not validation,
        "only_validation": validation and not defaulting,
    }
    written: list[Path] = []
    webhooks = folder / project.package / "webhooks"
    if defaulting or validation:
        made = write_tree("webhook/package/webhooks", webhooks, values, names, flags)
        if not made:
            raise ValueError(f"{_module_path(project, known, 'webhooks')} is there already: edit it")
        written += [Path(project.package, "webhooks", path) for path in made]
        written += [Path("tests", path) for path in write_tree("webhook/tests", folder / "tests", values, names, flags)]
        line = f"from {project.package}.webhooks import {module} as {module}_webhooks"
        _register(folder, project, line, "webhooks", f"{module}_webhooks.setup_webhook_with_manager(manager)")
        known.defaulting, known.validation = defaulting, validation
    if conversion:
        made = write_tree("conversion/package/webhooks", webhooks, values, names)
        written += [Path(project.package, "webhooks", path) for path in made]
        line = f"from {project.package}.webhooks import {module}_conversion"
        _register(folder, project, line, "webhooks", f"{module}_conversion.setup_conversion_with_manager(manager)")
        known.conversion = True
    config = write_tree("webhook/config/webhook", folder / "config/webhook", values, names)
    written += [Path("config/webhook", path) for path in config]
    if defaulting or validation:
        _add_resource(folder / "config/webhook/kustomization.yaml", "manifests.yaml")
    _add_resource(folder / "config/default/kustomization.yaml", "../webhook")
    project.write(folder)
    return [*written, *manifests.write(folder)]


def _register(folder: Path, project: Project, importing: str, marker: str, call: str) -> None:
    path = folder / project.package / "setup.py"
    insert(path, "imports", importing)
    insert(path, marker, call)


def _add_resource(path: Path, name: str) -> None:
    found = yaml.safe_load(path.read_text()) or {}
    resources = found.get("resources") or []
    if name and name not in resources:
        found["resources"] = [*resources, name]
        path.write_text(yaml.safe_dump(found, sort_keys=False))


def _module(resource: ProjectResource) -> str:
    return resource.kind.lower()


def _sample(resource: ProjectResource) -> str:
    return "_".join(filter(None, (resource.group, resource.version, _module(resource))))


def _module_path(project: Project, resource: ProjectResource, part: str) -> Path:
    version = (resource.version,) if part == "api" else ()
    return Path(project.package, part, *version, f"{_module(resource)}.py")


def _values(project: Project, resource: ProjectResource | None = None, *, storage: bool = True) -> dict[str, str]:
    values = {"name": project.name, "package": project.package, "domain": project.domain}
    if resource is None:
        return values
    full_group = project.full_group(resource.group)
    return {
        **values,
        "kind": resource.kind,
        "version": resource.version,
        "plural": resource.plural,
        "module": _module(resource),
        "full_group": full_group,
        "cluster_scoped": str(not resource.namespaced),
        "storage": str(storage),
        "controller_name": _module(resource),
        "path": f"{full_group.replace('.', '-')}-{resource.version}-{_module(resource)}",
        "test_namespace": ', "namespace": "default"' if resource.namespaced else "",
        "test_namespace_value": "default" if resource.namespaced else "",
    }
