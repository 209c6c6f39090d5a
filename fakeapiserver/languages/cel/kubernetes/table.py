"""The table of Kubernetes' functions by the ids of their overloads."""

from typing import Any, Final

from fakeapiserver.languages.cel.errors import CelError
from fakeapiserver.languages.cel.kubernetes.format import NAMED_FORMATS, validated
from fakeapiserver.languages.cel.kubernetes.network import NETWORKS
from fakeapiserver.languages.cel.kubernetes.quantity import QUANTITIES
from fakeapiserver.languages.cel.kubernetes.semver import VERSIONS
from fakeapiserver.languages.cel.kubernetes.shared import Function
from fakeapiserver.languages.cel.kubernetes.url import URLS
from fakeapiserver.languages.cel.values import NONE, Optional, equal

_MOST_ATTRIBUTES: Final = 48


def _includes(target: Any, value: Any) -> bool:
    """Reports whether a device's attribute is a list that has a value, or the value itself."""
    if not isinstance(target, list | tuple):
        return equal(target, value)
    if len(target) > _MOST_ATTRIBUTES and not any(equal(item, value) for item in target[:_MOST_ATTRIBUTES]):
        raise CelError(f"'includes' function cannot be applied to lists longer than {_MOST_ATTRIBUTES} values")
    return any(equal(item, value) for item in target)


FUNCTIONS: Final[dict[str, Function]] = {
    "dra_includes_dyn_dyn": _includes,
    **QUANTITIES,
    **VERSIONS,
    **NETWORKS,
    **URLS,
    **{f"format.{name}": lambda found=found: found for name, found in NAMED_FORMATS.items()},
    "format-named": lambda a: Optional(True, NAMED_FORMATS[a]) if a in NAMED_FORMATS else NONE,
    "format-validate": validated,
}
