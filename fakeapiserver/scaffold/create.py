"""`init`, `create api` and `create webhook`: what they write.

Upstream: sigs.k8s.io/kubebuilder/pkg/plugins/golang/v4. As there, nothing that a user may have edited is written over without
`--force`; other than there, nothing at all is written when something can't be.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apis import scheme
from fakeapiserver.scaffold import manifests
from fakeapiserver.scaffold.project import FILE, Project, ProjectResource
from fakeapiserver.scaffold.render import Changes
from fakeapiserver.scaffold.source import installable

_SETUP: Final = "setup.py"
_SAMPLES: Final = Path("config/samples/kustomization.yaml")
_RBAC: Final = Path("config/rbac/kustomization.yaml")
_DEFAULT: Final = Path("config/default/kustomization.yaml")
# Files that a new repository may have.
_BEGINNINGS: Final = re.compile(r"(README|LICENSE|LICENCE|NOTICE|CODE_OF_CONDUCT)(\.\w+)?", re.IGNORECASE)


def init(folder: Path, domain: str, repo: str, *, source: str = "", force: bool = False) -> Sequence[Path]:
    """Writes a new project into `folder`, and returns the paths of its files.

    - `repo`: the project's name; the last word counts if it is the path of a URL. Default: the folder's name.
    - `source`: what `make test` installs as fakeapiserver: a requirement, a folder or a wheel. Default: what is running, if that was
      installed from a folder or a file, and else the package of that name on the index.
    - `force`: the folder may hold other files. Files with the names of the project's are replaced.

    Raises ValueError with one sentence, e.g. for a folder that isn't empty."""
    name = repo.rstrip("/").rpartition("/")[2] or folder.resolve().name
    project = Project(domain, re.sub(r"[^a-z0-9-]", "-", name.lower()))
    if (folder / FILE).exists():
        raise ValueError(f"{folder} holds a project already: `fakeapiserver create api` adds to it")
    if not force and (others := _others(folder)):
        shown = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        raise ValueError(f"{folder} isn't empty ({shown}): begin in an empty folder, or say --force")
    values = {**_values(project), "source": installable(source)}
    changes = Changes(folder, replaces=force)
    changes.add_tree("readme", values, {}, shared=True)
    changes.add_tree("init", values, {"package": project.package})
    changes.put(Path(FILE), project.text())
    return [*changes.write(), *manifests.write(folder)]


def _others(folder: Path) -> Sequence[str]:
    """Returns the entries of a folder that a new repository does not have: no hidden files, README or license."""
    paths = sorted(folder.iterdir()) if folder.exists() else ()
    return [path.name for path in paths if not path.name.startswith(".") and not _BEGINNINGS.fullmatch(path.name)]


def create_api(
    folder: Path,
    wanted: ProjectResource,
    *,
    controller: bool,
    resource: bool,
    force: bool = False,
    external_domain: str | None = None,
) -> Sequence[Path]:
    """A version of a kind, with its controller and their tests; or (`resource` is false) a controller of a kind that is there: the
    project's, one of Kubernetes' own, or of the `external_domain`. ValueError with one sentence."""
    project = Project.read(folder)
    if resource and external_domain is not None:
        raise ValueError("--external-api-domain is for kinds of others: say --resource=false too")
    known = _known(project, wanted, external_domain, made=resource)
    if resource and known is not None and not force:
        raise ValueError(f"{wanted.kind} {wanted.version} is there already: edit it, or replace it with --force")
    subject = known or wanted
    if resource and (versions := project.versions_of(wanted)):
        subject.plural, subject.namespaced = versions[0].plural, versions[0].namespaced
    storage = project.versions_of(subject)[:1] in ([], [subject])
    if project.find(subject) is None:
        project.resources.append(subject)
    subject.controller |= controller
    values, names = _values(project, subject, storage=storage), _names(project, subject)
    changes = Changes(folder, replaces=force)
    if resource:
        changes.add_tree("samples", values, names, shared=True)
        changes.add_tree("api", values, names)
        changes.insert(_SAMPLES, "resources", f"- {names['sample']}.yaml")
        if storage:
            changes.add_tree("roles", values, names)
            for role in ("admin", "editor", "viewer"):
                changes.insert(_RBAC, "resources", f"- {names['module']}_{role}_role.yaml")
    if controller:
        changes.add_tree("external_controller" if subject.external else "controller", values, names)
        _register(changes, project, "controllers", names["module"], "controller", "setup_with_manager")
    if external_domain is not None:
        changes.add_tree("external_definition", values, names, shared=True)
    return _written(folder, project, changes)


class Webhooks(Struct, frozen=True):
    """The tasks of a kind's webhooks. `spokes`: the versions that are converted from and to this one; all others by default."""

    defaulting: bool = False
    validation: bool = False
    conversion: bool = False
    spokes: Sequence[str] = ()


def create_webhook(
    folder: Path,
    wanted: ProjectResource,
    webhooks: Webhooks,
    *,
    force: bool = False,
    external_domain: str | None = None,
) -> Sequence[Path]:
    """Writes webhooks of a kind that exists, and returns the files. Raises ValueError with one sentence."""
    project = Project.read(folder)
    defaulting, validation, conversion = webhooks.defaulting, webhooks.validation, webhooks.conversion
    if not (defaulting or validation or conversion):
        raise ValueError("say what the webhook is for: --defaulting, --programmatic-validation or --conversion")
    subject = _known(project, wanted, external_domain, made=False)
    assert subject is not None
    if conversion and subject.external:
        raise ValueError(f"{subject.kind} isn't this project's: who defines it converts it")
    if project.find(subject) is None:
        project.resources.append(subject)
    changes = Changes(folder, replaces=force)
    if defaulting or validation:
        subject.defaulting |= defaulting
        subject.validation |= validation
        _add_admission(changes, project, subject)
    if conversion:
        _add_conversion(changes, project, subject, _spokes(project, subject, webhooks.spokes))
    elif webhooks.spokes:
        raise ValueError("--spoke is for --conversion")
    _add_webhook_config(changes, project, subject)
    return _written(folder, project, changes)


def _known(
    project: Project, wanted: ProjectResource, external_domain: str | None, *, made: bool
) -> ProjectResource | None:
    """The project's entry of a kind, or one for a kind of others. ValueError when it has to be there and isn't; None when it is
    still to be `made`."""
    if external_domain is not None:
        wanted.group, wanted.external = f"{wanted.group}.{external_domain}".strip("."), True
        return project.find(wanted) or wanted
    if (existing := project.find(wanted)) is not None or made:
        return existing
    if (builtin := _builtin(wanted)) is not None:
        return project.find(builtin) or builtin
    raise ValueError(
        f"there is no {wanted.kind} {wanted.version}, neither in this project nor among Kubernetes' own kinds: "
        "`fakeapiserver create api` it first, or say whose it is with --external-api-domain"
    )


def _builtin(wanted: ProjectResource) -> ProjectResource | None:
    groups = [""] if wanted.group in ("", "core") else [wanted.group, f"{wanted.group}.k8s.io"]
    for group in groups:
        row = scheme.load().resource_for(GroupVersionKind(group, wanted.version, wanted.kind))
        if row is not None:
            plural, namespaced = row.gvr.resource, row.namespaced
            return ProjectResource(group, wanted.version, wanted.kind, plural, namespaced=namespaced, external=True)
    return None


def _add_admission(changes: Changes, project: Project, subject: ProjectResource) -> None:
    defaulting, validation = subject.defaulting, subject.validation
    flags = {
        "defaulting": defaulting,
        "validation": validation,
        "both": defaulting and validation,
        "only_defaulting": defaulting and not validation,
        "only_validation": validation and not defaulting,
    }
    values, names = _values(project, subject), _names(project, subject)
    changes.add_tree("webhook", values, names, flags)
    changes.add_tree("external_webhook_test" if subject.external else "webhook_test", values, names, flags)
    _register(changes, project, "webhooks", names["module"], "webhooks", "setup_webhook_with_manager")


def _add_webhook_config(changes: Changes, project: Project, subject: ProjectResource) -> None:
    """Adds the Service, the certificate, and the patches of the server and the manager for them."""
    changes.add_tree("webhook_config", _values(project), {}, shared=True)
    for line in ("- ../webhook", "- ../certmanager"):
        changes.insert(_DEFAULT, "resources", line)
    changes.insert(_DEFAULT, "patches", "- path: manager_webhook_patch.yaml")
    believing = []
    if subject.defaulting:
        believing.append("kind: MutatingWebhookConfiguration")
    if subject.validation:
        believing.append("kind: ValidatingWebhookConfiguration")
    if subject.conversion:
        changes.add_tree("conversion_config", {}, {}, shared=True)
        name = f"{subject.plural}.{project.full_group(subject)}"
        believing.append(f"kind: CustomResourceDefinition, name: {name}")
    for target in believing:
        changes.insert(_DEFAULT, "patches", f"- {{path: webhook_ca_patch.yaml, target: {{{target}}}}}")
    changes.insert(Path("config/network-policy/kustomization.yaml"), "resources", "- allow-webhook-traffic.yaml")
    if subject.defaulting or subject.validation:
        changes.insert(Path("config/webhook/kustomization.yaml"), "resources", "- manifests.yaml")


def _spokes(project: Project, subject: ProjectResource, wanted: Sequence[str]) -> Sequence[str]:
    others = [row.version for row in project.versions_of(subject) if row is not subject]
    if not others or any(spoke not in others for spoke in wanted):
        raise ValueError(
            f"--conversion needs another version of {subject.kind}, named by --spoke: "
            f"{'there is no other' if not others else 'there are ' + ', '.join(others)}"
        )
    return wanted or others


def _add_conversion(changes: Changes, project: Project, subject: ProjectResource, spokes: Sequence[str]) -> None:
    """The hub's module, once; then a line for each spoke."""
    values, names = _values(project, subject), _names(project, subject)
    module, kind = names["module"], subject.kind
    fresh = [spoke for spoke in spokes if spoke not in subject.spokes]
    if not fresh:
        raise ValueError(f"{kind} {subject.version} converts {', '.join(spokes)} already: edit {module}_conversion.py")
    path = Path(project.package, "webhooks", f"{module}_conversion.py")
    changes.add_tree("conversion", values, names, shared=bool(subject.spokes))
    for spoke in fresh:
        alias, hub = f"{module}_{spoke}", f"{module}_{subject.version}.{kind}"
        changes.insert(path, "imports", f"from {project.package}.api.{spoke} import {module} as {alias}")
        changes.insert(path, "spokes", f"spokes.add({alias}.{kind}, to_hub=to({hub}), from_hub=to({alias}.{kind}))")
        spoke_names = {**names, "version": spoke}
        changes.add_tree("conversion_test", {**values, "spoke": spoke, "hub": subject.version}, spoke_names)
    subject.conversion = True
    subject.spokes = [*subject.spokes, *fresh]
    _register(changes, project, "webhooks", f"{module}_conversion", "", "setup_conversion_with_manager")


def _register(changes: Changes, project: Project, part: str, module: str, alias: str, function: str) -> None:
    """Has the manager run what a module adds to it."""
    name = f"{module.rstrip('_')}_{alias}" if alias else module
    importing = f"from {project.package}.{part} import {module}" + (f" as {name}" if alias else "")
    path = Path(project.package, _SETUP)
    changes.insert(path, "imports", importing)
    changes.insert(path, part, f"{name}.{function}(manager)")


def _written(folder: Path, project: Project, changes: Changes) -> Sequence[Path]:
    """Writes, once it is sure that manifests can be made of the code that is there."""
    manifests.generate(folder)
    changes.put(Path(FILE), project.text())
    return [*changes.write(), *manifests.write(folder)]


def _names(project: Project, resource: ProjectResource) -> Mapping[str, str]:
    """Returns the values for the placeholders in templates' paths."""
    module = project.module(resource)
    return {
        "package": project.package,
        "version": resource.version,
        "module": module,
        "sample": "_".join(filter(None, (resource.group, resource.version, module))),
        "definition": f"{project.full_group(resource)}_{resource.plural}",
    }


def _values(project: Project, resource: ProjectResource | None = None, *, storage: bool = True) -> dict[str, str]:
    values = {"name": project.name, "package": project.package, "domain": project.domain}
    if resource is None:
        return values
    full_group = project.full_group(resource)
    module = project.module(resource)
    return {
        **values,
        "kind": resource.kind,
        "version": resource.version,
        "api_version": f"{full_group}/{resource.version}".lstrip("/"),
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "module": module,
        "object_name": module.strip("_").replace("_", "-"),
        "full_group": full_group,
        "cluster_scoped": str(not resource.namespaced),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "storage": str(storage),
        "path": f"{full_group.replace('.', '-')}-{resource.version}-{resource.kind.lower()}",
        "test_namespace": ', namespace="default"' if resource.namespaced else "",
        "test_namespace_value": "default" if resource.namespaced else "",
    }
