"""Decides which types are assignable to others, and binds type parameters on the way.

Upstream: github.com/google/cel-go/checker/types.go
"""

from typing import Final

from fakeapiserver.languages.cel.types import DYN, Type

ANYTHING: Final = frozenset({"dyn", "any", "error"})
_NULLABLE: Final = frozenset({"opaque", "struct", "duration", "timestamp"})
Substitutions = dict[Type, Type]


def substituted(bound: Substitutions, t: Type, *, to_dyn: bool = False) -> Type:
    if t.kind == "param":
        if (substitute := bound.get(t)) is not None:
            return substituted(bound, substitute, to_dyn=to_dyn)
        return DYN if to_dyn else t
    if not t.params:
        return t
    return t._replace(params=tuple(substituted(bound, p, to_dyn=to_dyn) for p in t.params))


def is_assignable(bound: Substitutions, given: Type, wanted: Type) -> bool:
    """Reports whether a value of the one type can stand for the other; binds type parameters on the way."""
    if wanted.kind == "param":
        valid, was_bound = _binds(bound, given, wanted)
        if valid or was_bound:
            return valid
    if given.kind == "param":
        return _binds(bound, wanted, given)[0]
    if given.kind in ANYTHING or wanted.kind in ANYTHING:
        return True
    if given.kind == "null":
        return wanted.kind in _NULLABLE or wanted.kind == "null"
    if wanted.kind == "null":
        return given.kind in _NULLABLE
    if given.kind == "type":
        return wanted.kind == "type"
    if given.kind != wanted.kind or given.name != wanted.name or len(given.params) != len(wanted.params):
        return False
    return all(is_assignable(bound, a, b) for a, b in zip(given.params, wanted.params, strict=True))


def _binds(bound: Substitutions, t: Type, variable: Type) -> tuple[bool, bool]:
    """Whether a variable can be the type, and whether it already was something."""
    if t == variable:
        return True, True
    before = bound.get(variable)
    if before is not None:
        if before == t:
            return True, True
        if not is_assignable(bound, t, before):
            return False, True
        general = most_general(t, before)
        if _is_free(bound, variable, general):
            bound[variable] = general
        return True, True
    if not _is_free(bound, variable, t):
        return False, False
    bound[variable] = t
    return True, False


def _is_free(bound: Substitutions, variable: Type, t: Type) -> bool:
    """Reports whether the type does not contain the variable."""
    if variable == t:
        return False
    if t.kind == "param":
        return t not in bound or _is_free(bound, variable, bound[t])
    return all(_is_free(bound, variable, p) for p in t.params)


def most_general(one: Type, other: Type) -> Type:
    return one if _is_less_specific(one, other) else other


def _is_less_specific(one: Type, other: Type) -> bool:
    if one.kind in ("dyn", "param"):
        return True
    if other.kind in ("dyn", "param") or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in ("opaque", "list", "map"):
        same = one.name == other.name and len(one.params) == len(other.params)
        return same and all(_is_less_specific(a, b) for a, b in zip(one.params, other.params, strict=True))
    return one == other
