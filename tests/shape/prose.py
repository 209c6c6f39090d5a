"""Finds sentences that are not plain English: `python tests/shape/prose.py [--names] PATH ...` prints one line for each.

Reads the comments, docstrings, log lines, messages and names of tests in Python files, and the text of Markdown files outside of code. An
entry is flagged for a word of the project's former private idiom (`REFUSED`), or because a docstring begins with a word that makes it a
fragment (`FRAGMENTS`).
With `--names` it also prints the functions that have a local variable called `found` or like it (`NAMES`).
"""

import ast
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

REFUSED: Final = re.compile(
    r"""\b(
    told | tells | tell | nobody | somebody | whoever | whom | whomever | anew | dear | heed | heeds | heeded | heeding
    | (?:is|are|was|were|be) \s (?-i:none) | (?:of|for|to|with) \s (?:one|ones|those|what|who) \s (?:that|who|is|are|it|they)
    | of \s what | stands? \s for \s itself | speaks? \s of | its \s like | at \s all \s times | (?:may|can) \s he
    | say, | , \s say\b | hereby | therein | thereof | whither | naught | aught | lest | hitherto
    | knows? \s of \s no | he \s (?:may|is|has|can|knows|asks|wants)
    | answers? \s (?:None|True|False|whether|what|how|which|nothing|it)\b
    | answers? \s (?:the|a|an|all|every|each|its) \s
      (?!(?:[\w-]+\s){0,2}(?:requests?|calls?|checks?|health|questions?|challenges?|clients?)\b)
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
FRAGMENTS: Final = frozenset(
    (
        "Of",
        "What",
        "Who",
        "Whom",
        "Whose",
        "Those",
        "It",
        "As",
        "One",
        "Ones",
        "Where",
        "Nothing",
        "None",
        "How",
        "Which",
        "That",
        "Such",
        "They",
        "He",
        "So",
        "And",
        "Or",
        "But",
        "Else",
        "Also",
    )
)
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_LOGS: Final = frozenset(("debug", "info", "warning", "error", "exception", "critical", "log"))
NAMES: Final = frozenset(("found", "told", "shown", "wanted", "said", "made", "bad", "place"))


class Entry(NamedTuple):
    """A piece of prose. `line` counts from 1.

    `kind` is docstring, attribute (a string below an assignment), comment (adjacent lines together), name (of a test, as words), log,
    message (of an exception, or printed), or text (a paragraph of Markdown).
    """

    path: Path
    line: int
    kind: str
    text: str


def entries(path: Path) -> Iterator[Entry]:
    """Yields the prose of one file; code in backticks and quoted text are blanked out."""
    source = path.read_text()
    if path.suffix == ".md":
        yield from _markdown(path, source)
        return
    tree = ast.parse(source)
    docstrings = {id(node.body[0]) for node in ast.walk(tree) if isinstance(node, _DOCUMENTED) and node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            kind = "docstring" if id(node) in docstrings else "attribute"
            yield Entry(path, node.lineno, kind, _plain(inspect.cleandoc(node.value.value)))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Entry(path, node.lineno, "name", node.name.replace("_", " "))
        elif (kind := _says(node)) and isinstance(node, ast.Call | ast.Raise):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield Entry(path, inner.lineno, kind, _plain(inner.value))
    yield from _comments(path, source)


def _says(node: ast.AST) -> str:
    """Returns `log` for a call of a logger, `message` for print() and for an exception of ours, or ""."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOGS:
        return "log" if "log" in ast.unparse(node.func.value).lower() else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
        return "message"
    # A Status has upstream's words; what makes one is a function, or is called StatusError.
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        name = ast.unparse(node.exc.func)
        return "message" if name.endswith("Error") and not name.endswith("StatusError") else ""
    return ""


def _comments(path: Path, source: str) -> Iterator[Entry]:
    block: list[str] = []
    start = last = column = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("#!", "# type:", "# noqa")):
            line, at = token.start
            if not (block and line == last + 1 and at == column):
                if block:
                    yield Entry(path, start, "comment", _plain(" ".join(block)))
                block, start, column = [], line, at
            block.append(token.string.lstrip("# "))
            last = line
    if block:
        yield Entry(path, start, "comment", _plain(" ".join(block)))


def problems(entry: Entry) -> Iterator[str]:
    """Yields what is wrong with an entry, in a few words each."""
    for match in REFUSED.finditer(entry.text):
        yield f"refused: {match[0]!r}"
    first = entry.text.lstrip().partition(" ")[0].rstrip(",.:;")
    if entry.kind == "docstring" and first in FRAGMENTS:
        yield f"begins with {first!r}"


def names(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yields (line, function, name) for each function with a local variable that has one of `NAMES`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            stored = {
                inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
            }
            for name in sorted(stored & NAMES):
                yield node.lineno, node.name, name


def sources(places: list[Path]) -> Iterator[Path]:
    """Yields the Python and Markdown files at and below these places, without following links."""
    for place in places:
        yield from (
            [place]
            if place.is_file()
            else sorted(
                path for suffix in ("*.py", "*.md") for path in place.rglob(suffix) if "__pycache__" not in path.parts
            )
        )


def _plain(text: str) -> str:
    return re.sub(r"``?[^`]*``?", "`code`", re.sub(r"[\"“][^\"”]*[\"”]", '"quoted"', text))


def _markdown(path: Path, source: str) -> Iterator[Entry]:
    fenced = False
    paragraph: list[str] = []
    start = 0
    for number, line in enumerate([*source.splitlines(), ""], 1):
        is_fence = line.lstrip().startswith("```")
        begins = is_fence or not line.strip() or line.lstrip().startswith(("|", "#", "- ", "* "))
        if paragraph and (begins or paragraph[-1].startswith("#")):
            yield Entry(path, start, "text", _plain(" ".join(paragraph)))
            paragraph = []
        fenced ^= is_fence
        if not fenced and not is_fence and line.strip():
            start = start if paragraph else number
            paragraph.append(line.strip())


def main(arguments: list[str]) -> int:
    """Prints the problems below the places given; the exit code is 1 if there are any."""
    flagged = 0
    for path in sources([Path(argument) for argument in arguments if not argument.startswith("--")]):
        for entry in entries(path):
            for problem in problems(entry):
                flagged += 1
                print(f"{path}:{entry.line}: {entry.kind} {problem}: {' '.join(entry.text.split())[:140]}")
        if "--names" in arguments and path.suffix == ".py":
            for line, function, name in names(path):
                print(f"{path}:{line}: {function} has a local called {name!r}")
    return 1 if flagged else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
