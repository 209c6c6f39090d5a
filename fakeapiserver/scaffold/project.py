"""The file PROJECT: what a project is called and what was created in it (upstream: kubebuilder's pkg/model/config)."""

import keyword
import re
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.controller_runtime.markers import plural_of

FILE: Final = "PROJECT"
_LAYOUT: Final = "fakeapiserver/v1"
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
# Beside the package, or imported by it.
_TAKEN: Final = frozenset(("config", "fakeapiserver", "pydantic", "tests", *sys.stdlib_module_names))
_SYSTEM: Final = "-system"  # the namespace is NAME-system


class InvalidName(ValueError):
    """A flag names what can't be a name; the text is one sentence."""


@dataclass(slots=True)
class ProjectResource:
    """A version of a kind.

    `group` is without the project's domain, but whole where the kind is `external`: one of Kubernetes' own, or of
    another project.
    """

    group: str
    version: str
    kind: str
    plural: str
    controller: bool = False
    namespaced: bool = True
    defaulting: bool = False
    validation: bool = False
    conversion: bool = False
    external: bool = False
    spokes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Project:
    """`name` is the distribution's, `package` what Python imports."""

    domain: str
    name: str
    resources: list[ProjectResource] = field(default_factory=list)

    def __post_init__(self) -> None:
        if problems := names.is_dns1123_subdomain(self.domain):
            raise InvalidName(f"--domain {self.domain!r}: {problems[0]}")
        if problems := names.is_dns1123_label(self.name + _SYSTEM):
            raise InvalidName(f"--repo {self.name!r}: {problems[0]}")
        if not self.package.isidentifier():
            raise InvalidName(f"--repo {self.name!r}: Python can't import {self.package!r}; begin with a letter")
        if keyword.iskeyword(self.package) or self.package in _TAKEN:
            raise InvalidName(f"--repo {self.name!r}: a Python package can't be called {self.package!r} here")

    @property
    def package(self) -> str:
        return self.name.replace("-", "_")

    def full_group(self, resource: ProjectResource) -> str:
        """`apps.example.com`; "" for Kubernetes' first kinds."""
        if resource.external:
            return resource.group
        return f"{resource.group}.{self.domain}" if resource.group else self.domain

    def versions_of(self, wanted: ProjectResource) -> list[ProjectResource]:
        """The kind's versions, as they were created."""
        group = self.full_group(wanted)
        return [row for row in self.resources if (self.full_group(row), row.kind) == (group, wanted.kind)]

    def find(self, wanted: ProjectResource) -> ProjectResource | None:
        """The same kind in the same version."""
        return next((row for row in self.versions_of(wanted) if row.version == wanted.version), None)

    def module(self, wanted: ProjectResource) -> str:
        """Returns the name of the kind's modules: the kind, with its group if an earlier kind has that name."""
        name = wanted.kind.lower()
        first = next((row for row in self.resources if row.kind.lower() == name), wanted)
        if self.full_group(first) != self.full_group(wanted):
            name = f"{re.sub('[^a-z0-9]', '_', wanted.group) or 'core'}_{name}"
        return f"{name}_" if keyword.iskeyword(name) else name

    def resource(self, kind: GroupKind) -> ProjectResource | None:
        """The entry of a kind that has a conversion, or else the first one, by its full group."""
        matching = [row for row in self.resources if (self.full_group(row), row.kind) == kind]
        return next((row for row in matching if row.conversion), matching[0] if matching else None)

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """ValueError with one sentence when `folder` holds no project."""
        try:
            document: dict[str, Any] = yaml.safe_load((folder / FILE).read_text(encoding="utf-8"))
            resources = [ProjectResource(**row) for row in document.get("resources") or ()]
            return cls(document["domain"], document["projectName"], resources)
        except FileNotFoundError:
            raise ValueError(
                f"there is no file {FILE} here: run `fakeapiserver init` first, or go to the project"
            ) from None
        except (yaml.YAMLError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"the file {FILE} can't be read: {error}") from None

    def text(self) -> str:
        """Returns the contents of the file PROJECT."""
        resources = [
            {key: value for key, value in asdict(row).items() if key == "namespaced" or value not in (False, [])}
            for row in self.resources
        ]
        document = {"layout": _LAYOUT, "domain": self.domain, "projectName": self.name, "resources": resources}
        return yaml.safe_dump(document, sort_keys=False)


def checked_resource(group: str, version: str, kind: str, plural: str, *, namespaced: bool) -> ProjectResource:
    """ValueError with one sentence for what isn't allowed."""
    if group and (problems := names.is_dns1123_subdomain(group)):
        raise InvalidName(f"--group {group!r}: {problems[0]}")
    if not _VERSION.fullmatch(version):
        raise InvalidName(f"--version {version!r}: must be like v1, v1beta1 or v2alpha1")
    if not _KIND.fullmatch(kind) or len(kind) > 63 or keyword.iskeyword(kind):
        raise InvalidName(f"--kind {kind!r}: must be in CamelCase, such as CronJob")
    if plural and (problems := names.is_dns1035_label(plural)):
        raise InvalidName(f"--plural {plural!r}: {problems[0]}")
    return ProjectResource(group, version, kind, plural or plural_of(kind), namespaced=namespaced)
