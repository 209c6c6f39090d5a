"""The known values of flags and arguments, for completion and for suggestions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final


def _controllers() -> Sequence[str]:
    from fakeapiserver.controller_manager.descriptor import selected

    return [descriptor.name for descriptor in selected(("*",))]


def _admission_plugins() -> Sequence[str]:
    from fakeapiserver.admission.options import IMPLEMENTED

    return sorted(IMPLEMENTED)


def _feature_gates() -> Sequence[str]:
    from fakeapiserver.server.options.config import FEATURE_GATES

    return sorted(FEATURE_GATES)


def _authorization_modes() -> Sequence[str]:
    from fakeapiserver.server.options.authorization import MODES

    return MODES


def _kubernetes_versions() -> Sequence[str]:
    from fakeapiserver.apis.recorded import known_versions

    return [version.removeprefix("v") for version in known_versions()]


def _help() -> Sequence[str]:
    from fakeapiserver.cli.manual.commands import commands
    from fakeapiserver.cli.manual.topics import TOPICS

    return list(dict.fromkeys([*TOPICS, *(name.partition(" ")[0] for name in commands())]))


_CHOICES: Final[Mapping[str, Callable[[], Sequence[str]]]] = {
    "admission-plugins": _admission_plugins,
    "authorization-modes": _authorization_modes,
    "controllers": _controllers,
    "envtest-assets": lambda: ("list", "use"),
    "envtest-outputs": lambda: ("path", "env", "json", "overview"),
    "feature-gates": _feature_gates,
    "help": _help,
    "kubernetes-versions": _kubernetes_versions,
    "metrics": lambda: ("resource", "custom", "external"),
    "outputs": lambda: ("text", "json"),
    "shells": lambda: ("bash", "zsh", "fish"),
}


def choices(name: str) -> Sequence[str]:
    """The values of a list that a Flag or a Command names; none for ""."""
    return _CHOICES[name]() if name else ()
