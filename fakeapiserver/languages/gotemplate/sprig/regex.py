"""Functions of regular expressions."""

import re
from collections.abc import Callable
from typing import Any

from fakeapiserver.apimachinery.schema.patterns import compile_pattern, pattern_problem
from fakeapiserver.languages.gotemplate.values import TemplateError


def _pattern(pattern: str) -> Any:
    if problem := pattern_problem(pattern):
        raise TemplateError(problem)
    return compile_pattern(pattern, captures=True)


def must_match(pattern: str, text: str) -> bool:
    return _pattern(pattern).search(text) is not None


def match(pattern: str, text: str) -> bool:
    return not pattern_problem(pattern) and must_match(pattern, text)


def find(pattern: str, text: str) -> str:
    match = _pattern(pattern).search(text)
    return match.group() if match else ""


def find_all(pattern: str, text: str, count: int) -> list[Any]:
    matches = [match.group() for match in _pattern(pattern).finditer(text)]
    return matches if count < 0 else matches[:count]


def _replaced(pattern: str, text: str, template: Callable[[Any], str]) -> str:
    out, at = [], 0
    for match in _pattern(pattern).finditer(text):
        out += [text[at : match.start()], template(match)]
        at = match.end()
    return "".join([*out, text[at:]])


def replace_all(pattern: str, text: str, replacement: str) -> str:
    def expanded(match: Any) -> str:
        def group(name: re.Match[str]) -> str:
            if name.group() == "$$":
                return "$"
            wanted = name[1] or name[2]
            try:
                return match.group(int(wanted) if wanted.isdigit() else wanted) or ""
            except (IndexError, LookupError, ValueError):
                return ""

        return re.sub(r"\$\$|\$(\w+)|\$\{(\w+)\}", group, replacement)

    return _replaced(pattern, text, expanded)


def replace_all_literal(pattern: str, text: str, replacement: str) -> str:
    return _replaced(pattern, text, lambda match: replacement)


def split(pattern: str, text: str, count: int) -> list[Any]:
    if count == 0:
        return []
    parts: list[Any] = []
    at = 0
    for match in _pattern(pattern).finditer(text):
        if count > 0 and len(parts) == count - 1:
            break
        if match.end() == 0 or (match.start() == match.end() == len(text)):
            continue
        parts.append(text[at : match.start()])
        at = match.end()
    return [*parts, text[at:]]
