"""The table of the standard functions by the ids of their overloads."""

from typing import Final

from fakeapiserver.languages.cel.functions.arithmetic import ARITHMETIC
from fakeapiserver.languages.cel.functions.comparisons import comparisons, not_equal
from fakeapiserver.languages.cel.functions.containers import contains, in_list, in_map, insert, insert_all
from fakeapiserver.languages.cel.functions.conversions import ALL_CONVERSIONS
from fakeapiserver.languages.cel.functions.function import Function
from fakeapiserver.languages.cel.functions.lists import list_functions
from fakeapiserver.languages.cel.functions.optionals import OPTIONALS
from fakeapiserver.languages.cel.functions.strings import STRINGS
from fakeapiserver.languages.cel.functions.time_parts import time_parts
from fakeapiserver.languages.cel.values import equal

FUNCTIONS: Final[dict[str, Function]] = {
    **ARITHMETIC,
    **comparisons(),
    **ALL_CONVERSIONS,
    **time_parts(),
    **list_functions(),
    **OPTIONALS,
    **STRINGS,
    "equals": equal,
    "not_equals": not_equal,
    "in_list": in_list,
    "in_map": in_map,
    **{f"size_{kind}": len for kind in ("bytes", "list", "map", "string")},
    **{f"{kind}_size": len for kind in ("bytes", "list", "map", "string")},
    "list_sets_contains_list": lambda a, b: all(contains(a, item) for item in b),
    "list_sets_intersects_list": lambda a, b: any(contains(b, item) for item in a),
    "list_sets_equivalent_list": lambda a, b: all(contains(a, i) for i in b) and all(contains(b, i) for i in a),
    "string_jsonpatch_escapeKey_string": lambda a: a.replace("~", "~0").replace("/", "~1"),
    "@mapInsert_map_key_value": insert,
    "@mapInsert_map_map": insert_all,
}
