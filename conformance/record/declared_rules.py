"""Records which rules of a version's kinds are declared in their types: their errors come last, and say less than those of older versions.

    python -m conformance.record.declared_rules --kubernetes DIR --out fakeapiserver/apis/versions/v1.37

DIR has the sources of k8s.io/kubernetes, whose zz_generated.validations.go are read. declared_rules.json has a kind a line,
`package/version/Kind`, with its enforced rules as [path, name of the rule, stage]; `[*]` is any item or key, and the stage is "beta" for
rules that the gate DeclarativeValidationBeta switches off, else "". Left out are rules that only
accompany handwritten ones (upstream: +k8s:alpha), those that never refuse anything (Optional…), and groups whose rules the registry has as
tables of its own (registry/declared/types.py). --out has schemas.json, whose kinds are wanted.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from conformance.record.types import lines

_FUNCTION: Final = re.compile(r"^func Validate_(\w+)\((?:.*?\n)+?^\}", re.MULTILINE)
_ROOT: Final = re.compile(r"AddValidationFunc\(\s*\(\*\w+\.(\w+)\)\(nil\)")
_CALL: Final = re.compile(
    r"validate\.(\w+)\(ctx, op, fldPath, obj, oldObj(?:, \"([^\"]*)\")?|(?:(\w+)\.)?\bValidate_(\w+)\b"
)
# A rule that another one gets as an argument.
_PASSED: Final = re.compile(r"validate\.((?!\w*Equal|Optional)\w+)\s*\)?$")
_CHILD: Final = re.compile(r"fn\(fldPath(?:\.Child\(\"([^\"]+)\"\))?,")
_CHUNK: Final = re.compile(r"^\t(?=\S)(?!//)(?:.*\n)(?:(?!\t\S).*\n)*(?:\t\}.*\n)?", re.MULTILINE)
_MARK: Final = re.compile(r"\.Mark(Alpha|Beta)\(\)")
_EACH: Final = re.compile(r"Each(?:Val|Ptr)?(?:Slice|Map)Val|(?:Val|Ptr)?SliceItem")
_BELOW: Final = ("Subfield", "Discriminated")
_HAVE_TABLES: Final = ("lifecycle", "scheduling")

Rule = tuple[str, str, str]
Types = dict[str, dict[str, str]]
# The types, by package and name, that a type is in.
Outer = tuple[tuple[str, str], ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    sources = sorted(arguments.kubernetes.glob("pkg/apis/*/*/zz_generated.validations.go"))
    texts = {f"{path.parts[-3]}/{path.parts[-2]}": path.read_text() for path in sources}
    types = {package: {match[1]: match[0] for match in _FUNCTION.finditer(text)} for package, text in texts.items()}
    served = json.loads((arguments.out / "schemas.json").read_text())
    found: dict[str, list[Rule]] = {}
    for package, text in texts.items():
        if package.startswith(_HAVE_TABLES):
            continue
        for kind in dict.fromkeys(_ROOT.findall(text)):
            rules = [*dict.fromkeys(rules_of(types, package, kind, "", ()))]
            if rules and f"io.k8s.api.{package.replace('/', '.')}.{kind}" in served:
                found[f"{package}/{kind}"] = rules
    (arguments.out / "declared_rules.json").write_text(lines(found, 1) + "\n")
    print(f"{sum(map(len, found.values()))} rules of {len(found)} kinds", file=sys.stderr)
    return 0


def rules_of(types: Types, package: str, name: str, path: str, outer: Outer) -> Iterator[Rule]:
    """The enforced rules of a type at a path of its kind. A type within itself is read once."""
    body = types.get(package, {}).get(name, "")
    if (package, name) in outer:
        return
    for chunk in _CHUNK.findall(body):
        child = _CHILD.search(chunk)
        at = f"{path}.{child[1]}".lstrip(".") if child and child[1] else path
        yield from _rules_in(types, package, chunk, at, "", (*outer, (package, name)))


def _rules_in(types: Types, package: str, text: str, path: str, stage: str, outer: Outer) -> Iterator[Rule]:
    """The rules of the calls in a text. `stage`: what the call around them says of all of them."""
    at = 0
    while match := _CALL.search(text, at):
        rule, literal, alias, called = match.groups()
        if called:
            at = match.end()
            if not alias or _package_of(alias) in types:
                yield from rules_of(types, _package_of(alias) if alias else package, called, path, outer)
            continue
        at = end_of(text, match.start() + len("validate.") + len(rule))
        mark = _MARK.match(text, at)
        own = mark[1] if mark else stage
        inner = text[match.end() : at]
        below = f"{path}[*]" if _EACH.fullmatch(rule) else f"{path}.{literal}".lstrip(".") if rule in _BELOW else path
        if _CALL.search(inner):
            yield from _rules_in(types, package, inner, below, own, outer)
        elif (passed := _PASSED.search(inner)) and (below != path or rule == "IfOption"):
            yield from [(below, passed[1], own.lower())] if own != "Alpha" else []
        elif own != "Alpha" and not rule.startswith("Optional"):
            yield path, rule, own.lower()


def end_of(text: str, opening: int) -> int:
    """The place after the parenthesis that closes the one at `opening`."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place + 1
    return len(text)


def _package_of(alias: str) -> str:
    """`corev1` -> `core/v1`."""
    return re.sub(r"(v\d+(?:(?:alpha|beta)\d+)?)$", r"/\1", alias)


if __name__ == "__main__":
    sys.exit(main())
