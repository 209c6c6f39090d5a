"""Writes the pages about each minor version from the recorded tables: `python tests/shape/version_pages.py`.

docs/versions/1.36.md has what 1.36 changed, docs/versions.md links to all of them.
`tests/shape/test_documents.py` fails if a page is out of date.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from fakeapiserver.apis.recorded import known_versions
from fakeapiserver.cli.upgrade import facts

DOCS: Final = Path(__file__).parents[2] / "docs"
INDEX: Final = DOCS / "versions.md"
_HEADING: Final = "Each page lists the changes from the version before:\n\n"


def pages() -> Iterator[tuple[Path, str]]:
    """Yields the path of each page with its text, and then docs/versions.md."""
    links = []
    for old, new in pairwise(known_versions()):
        found = facts.between(old, new)
        name = new.removeprefix("v")
        yield DOCS / "versions" / f"{name}.md", page(found, old.removeprefix("v"), name)
        numbers = f"{len(found.added)} resources more, {len(found.removed)} fewer, {len(found.fields)} fields, {len(found.gates)} gates"
        links.append(f"- [{name}](versions/{name}.md): {numbers}\n")
    before = INDEX.read_text().partition(_HEADING)[0]
    yield INDEX, f"{before}{_HEADING}{''.join(links)}"


def page(found: facts.Facts, old: str, new: str) -> str:
    """A list for each part of the facts, as `fakeapiserver diff-versions` prints them."""
    title, *lines = facts.lines(found)
    older, newer = title.removeprefix("Kubernetes ").replace("v", "").split(" -> ")
    text = [
        f"# Kubernetes {new}",
        "",
        f"The differences between kube-apiserver {older} and {newer}.",
    ]
    for line in lines:
        if line.startswith("  "):
            sign, _, rest = line.strip().partition(" ")
            text.append(f"- {_WORDS[sign]} `{rest.partition(' (')[0].partition(': ')[0]}`{_rest(rest)}")
        elif line:
            heading, _, none = line.partition(":")
            text += [f"## {heading}", *([f"{none.strip().capitalize()}."] if none else [])]
        else:
            text.append("")
    return "\n".join(text) + "\n"


_WORDS: Final = {"+": "new:", "-": "gone:", "~": "changed:"}


def _rest(text: str) -> str:
    """Returns the rest of a line after its name. A type in parentheses is code, since Markdown takes brackets for a link."""
    if " (" in text:
        return f" (`{text.partition(' (')[2].removesuffix(')')}`)"
    return f": {text.partition(': ')[2]}" if ": " in text else ""


if __name__ == "__main__":
    for path, text in pages():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
