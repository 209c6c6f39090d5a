"""The known values of flags and arguments, for completion and for suggestions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fakeapiserver.admission import options
from fakeapiserver.apis import recorded
from fakeapiserver.cli.manual import commands, topics
from fakeapiserver.controller_manager import descriptor as descriptor_module
from fakeapiserver.server.options import authorization, config
from fakeapiserver.sweep import perturbation


def _controllers() -> Sequence[str]:
    return [descriptor.name for descriptor in descriptor_module.selected(("*",))]


def _admission_plugins() -> Sequence[str]:
    return sorted(options.IMPLEMENTED)


def _feature_gates() -> Sequence[str]:
    return sorted(config.FEATURE_GATES)


def _authorization_modes() -> Sequence[str]:
    return authorization.MODES


def _kubernetes_versions() -> Sequence[str]:
    return [version.removeprefix("v") for version in recorded.known_versions()]


def _help() -> Sequence[str]:
    return list(dict.fromkeys([*topics.TOPICS, *(name.partition(" ")[0] for name in commands.commands())]))


_CHOICES: Final[Mapping[str, Callable[[], Sequence[str]]]] = {
    "admission-plugins": _admission_plugins,
    "authorization-modes": _authorization_modes,
    "controllers": _controllers,
    "envtest-assets": lambda: ("list", "use"),
    "envtest-outputs": lambda: ("path", "env", "json", "overview"),
    "feature-gates": _feature_gates,
    "help": _help,
    "kinds": lambda: perturbation.KINDS,
    "kubernetes-versions": _kubernetes_versions,
    "metrics": lambda: ("resource", "custom", "external"),
    "outputs": lambda: ("text", "json"),
    "shells": lambda: ("bash", "zsh", "fish"),
}


def choices(name: str) -> Sequence[str]:
    """The values of a list that a Flag or a Command names; none for ""."""
    return _CHOICES[name]() if name else ()
