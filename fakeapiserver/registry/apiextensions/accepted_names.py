"""The names that a definition gets: each name alone is accepted if no other definition of the group has it.

Upstream: k8s.io/apiextensions-apiserver/pkg/controller/status/naming_controller.go.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

Names = Mapping[str, Any]

_ORDER: Final = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


class Acceptance(NamedTuple):
    """The accepted names, and the condition NamesAccepted."""

    names: dict[str, Any]
    status: str
    reason: str
    message: str


def are_accepted(requested: Names, accepted: Names) -> bool:
    """Reports whether there is nothing to decide."""
    return all((requested.get(name) or None) == (accepted.get(name) or None) for name in _ORDER)


def accept(requested: Names, accepted: Names, taken: Iterable[Names]) -> Acceptance:
    """`accepted` are those the definition has already; `taken` those of every definition of the group, its own among them."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for names in taken:
        resources |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
        kinds |= {names.get("kind", ""), names.get("listKind", "")}
    new = {**accepted, "categories": requested.get("categories")}
    problem = ("True", "NoConflicts", "no conflicts found")
    for name, used in (("plural", resources), ("singular", resources), ("shortNames", resources), *_kinds(kinds)):
        name_wish, own = requested.get(name), accepted.get(name)
        conflicts = _conflicts(name_wish, own, used)
        if conflicts:
            problem = ("False", f"{name[0].upper()}{name[1:]}Conflict", _aggregate(conflicts))
        else:
            new[name] = name_wish
    # Upstream's type always has plural and kind.
    names = {name: new.get(name) or "" for name in _ORDER if new.get(name) or name in ("plural", "kind")}
    return Acceptance(names, *problem)


def _kinds(used: set[str]) -> tuple[tuple[str, set[str]], ...]:
    return ("kind", used), ("listKind", used)


def _conflicts(wanted: Any, own: Any, used: set[str]) -> list[str]:
    if wanted == own:
        return []
    if isinstance(wanted, list):
        return [name for name in wanted if name in used and name not in (own or ())]
    return [wanted] if wanted in used else []


def _aggregate(names: list[str]) -> str:
    messages = list(dict.fromkeys(f'"{name}" is already in use' for name in names))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
