"""Functions of regular expressions."""

from typing import Any

from fakeapiserver.apimachinery.schema.patterns import compile_pattern, pattern_problem
from fakeapiserver.languages.jq.builtins.arguments import text_of
from fakeapiserver.languages.jq.errors import JqError


def matches(value: Any, pattern: Any, flags: Any, only_test: Any) -> Any:
    text, source = text_of("match", value), text_of("match", pattern)
    given = "" if flags is None else text_of("match", flags)
    if set(given) - set("gimsnlxp"):
        raise JqError(f"unsupported regular expression flag: {given!r}")
    inline = "".join(sorted({"i": "i", "s": "s", "p": "s", "x": ""}.get(flag, "") for flag in given))
    if problem := pattern_problem(source):
        raise JqError(f"invalid regular expression {source!r}: {problem}")
    compiled = compile_pattern(f"(?{inline}){source}" if inline else source, captures=True)
    if only_test:
        return compiled.search(text) is not None
    matches = []
    names = {number: name for name, number in compiled.groupindex.items()}
    for match in compiled.finditer(text):
        captures = [
            {
                "name": names.get(number),
                "offset": -1 if match.group(number) is None else match.start(number),
                "length": 0 if match.group(number) is None else len(match.group(number)),
                "string": match.group(number),
            }
            for number in range(1, compiled.groups + 1)
        ]
        whole = match.group()
        matches.append({"offset": match.start(), "length": len(whole), "string": whole, "captures": captures})
        if "g" not in given:
            break
    return matches


def splits(value: Any, pattern: Any, flags: Any) -> list[str]:
    text = text_of("split", value)
    parts, at = [], 0
    for match in matches(value, pattern, "g" + (flags or ""), False):
        parts.append(text[at : match["offset"]])
        at = match["offset"] + match["length"]
    return [*parts, text[at:]]
