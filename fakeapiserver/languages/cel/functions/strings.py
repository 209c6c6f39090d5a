"""Methods of strings."""

from typing import Final

from fakeapiserver.languages.cel import text
from fakeapiserver.languages.cel.functions.function import Function
from fakeapiserver.languages.cel.values import StringList


def _split(value: str, separator: str, limit: int = -1) -> StringList:
    return StringList(text.split(value, separator, limit))


def _find_all(value: str, pattern: str, limit: int = -1) -> StringList:
    return StringList(text.find_all(value, pattern, limit))


STRINGS: Final[dict[str, Function]] = {
    "contains_string": lambda a, b: b in a,
    "starts_with_string": lambda a, b: a.startswith(b),
    "ends_with_string": lambda a, b: a.endswith(b),
    "matches": text.matches,
    "matches_string": text.matches,
    "string_char_at_int": text.char_at,
    "string_index_of_string": text.index_of,
    "string_index_of_string_int": text.index_of,
    "string_last_index_of_string": text.last_index_of,
    "string_last_index_of_string_int": text.last_index_of,
    "string_lower_ascii": text.lower_ascii,
    "string_upper_ascii": text.upper_ascii,
    "string_replace_string_string": text.replace,
    "string_replace_string_string_int": text.replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": text.substring,
    "string_substring_int_int": text.substring,
    "string_trim": text.trim,
    "list_join": text.join,
    "list_join_string": text.join,
    "strings_quote": text.quote,
    "string_format": text.format_text,
    "string_find_string": text.find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}
