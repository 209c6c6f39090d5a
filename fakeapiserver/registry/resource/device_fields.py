"""The rules that claims, classes, slices and taint rules share: names, taints, lists.

Upstream: pkg/apis/resource/validation/validation.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.message import Message
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.registry.core.field_formats import name_errors
from fakeapiserver.registry.declared.rules import identifier_errors

Check = Callable[[Any, Path], ErrorList]
SPEC: Final = Path("spec")
# What of a configuration is a driver's, and Go keeps as text.
PARAMETERS: Final = ("opaque", "parameters")
MAX_REQUESTS: Final = 32
MAX_CONFIGS: Final = 32
MAX_PARAMETERS: Final = 10 * 1024
_MAX_DRIVER: Final = 63
_MAX_POOL: Final = 253
_MAX_BINDING_CONDITIONS: Final = 4
_SHORTEST_KEY: Final = 16
EFFECTS: Final = ("NoExecute", "NoSchedule", "None")


def effects_of(features: FeatureGates) -> Sequence[str]:
    """The effects of taints; the effect None is new in 1.35."""
    return EFFECTS if features.at_least("v1.35") else EFFECTS[:2]


def taint_errors(
    taint: Object, path: Path, known_effect: str | None = None, effects: Sequence[str] = EFFECTS
) -> ErrorList:
    """The errors in a taint. `known_effect`: the effect before an update, which stays allowed."""
    value, effect = taint.get("value", ""), taint.get("effect", "")
    errors = label_key_errors(taint.get("key", ""), path.child("key"))
    errors += name_errors(value, names.is_valid_label_value, path.child("value"))
    if effect == known_effect:
        return errors
    if not effect:
        errors.append(field.required(path.child("effect")))
    elif effect not in effects:
        errors.append(field.not_supported(path.child("effect"), effect, effects))
    return errors


def binding_errors(holder: Object, path: Path) -> ErrorList:
    """The errors in the conditions that binding waits for, and in those that end it."""
    good, failures = (holder.get(name) or [] for name in ("bindingConditions", "bindingFailureConditions"))
    errors: ErrorList = []
    for name, listed in (("bindingConditions", good), ("bindingFailureConditions", failures)):
        errors += list_errors(listed, _MAX_BINDING_CONDITIONS, label_key_errors, path.child(name))
    for name, listed in (("bindingConditions", good), ("bindingFailureConditions", failures)):
        repeated = field.repetitions(listed)
        for i, condition in enumerate(listed):
            at = path.child(name).index(i)
            if i in repeated:
                errors.append(field.duplicate(at, condition))
            if listed is failures and condition in good:
                detail = "bindingFailureConditions must not overlap with bindingConditions"
                errors.append(field.invalid(at, condition, detail))
    if failures and not good:
        detail = "bindingConditions are required to use bindingFailureConditions"
        errors.append(field.invalid(path.child("bindingConditions"), None, detail))
    if good and not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        errors.append(field.invalid(path.child("bindingFailureConditions"), None, detail))
    return errors


def driver_errors(name: str, path: Path) -> ErrorList:
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, _MAX_DRIVER)] if len(name.encode()) > _MAX_DRIVER else []
    return errors + [field.invalid(path, name, problem) for problem in names.is_dns1123_subdomain(name.lower())]


def pool_name_errors(name: str, path: Path) -> ErrorList:
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, _MAX_POOL)] if len(name.encode()) > _MAX_POOL else []
    return errors + [error for part in name.split("/") for error in name_errors(part, names.is_dns1123_subdomain, path)]


def label_key_errors(key: str, path: Path) -> ErrorList:
    return name_errors(key, names.is_qualified_name, path)


def qualified_errors(name: str, path: Path) -> ErrorList:
    """The errors in an identifier, maybe with a domain; upstream accepts any text with two slashes."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return identifier_errors(name, path)
    if "/" in identifier:
        return []
    errors = driver_errors(domain, path) if domain else [field.invalid(path, "", "the domain must not be empty")]
    if not identifier:
        return [*errors, field.invalid(path, "", "the name must not be empty")]
    return errors + identifier_errors(identifier, path)


def fully_qualified_errors(name: str, path: Path) -> ErrorList:
    errors = qualified_errors(name, path)
    if "/" not in name:
        detail = Message("a fully qualified name must be a domain and a name separated by a slash", "domain.required")
        errors.append(field.invalid(path, field.json_text(name), detail))
    return errors


def list_errors(items: Sequence[Any] | None, limit: int, check: Check, path: Path) -> ErrorList:
    """The errors in each item, or only the error for too many items. A negative limit is no limit."""
    if items is None:
        return []
    if 0 <= limit < len(items):
        return [field.too_many(path, len(items), limit)]
    return [error for i, item in enumerate(items) for error in check(item, path.index(i))]


def set_errors(
    items: Sequence[Any] | None, limit: int, check: Check, path: Path, key: Callable[[Any], Any]
) -> ErrorList:
    """The errors of `list_errors`, and those for items with the key of an earlier item."""
    errors = list_errors(items, limit, check, path)
    if items is None or 0 <= limit < len(items):
        return errors
    seen: list[Any] = []
    for i, item_key in enumerate(map(key, items)):
        if item_key in seen:
            errors.append(field.duplicate(path.index(i), item_key))
        seen.append(item_key)
    return errors


def map_errors(
    items: Mapping[str, Any], limit: int, longest: int, check_key: Check, check: Check, path: Path
) -> ErrorList:
    """The errors in the keys, at the map's path, and in the values, at their keys, which are shortened to `longest` bytes."""
    if 0 <= limit < len(items):
        return [field.too_many(path, len(items), limit)]
    errors: ErrorList = []
    for key, item in items.items():
        errors += check_key(key, path) + check(item, path.key(_shortened(key, longest)))
    return errors


def _shortened(text: str, longest: int) -> str:
    longest = max(longest, _SHORTEST_KEY)
    if len(text) <= longest:
        return text
    rest = longest - 3
    return f"{text[: (rest + 1) // 2]}...{text[len(text) - rest // 2 :]}"
