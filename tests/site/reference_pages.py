"""Writes the reference pages from the code: `python -m tests.site.reference_pages`.

docs/reference/commands.md has the help of each command and topic, test-control.md the paths below /fakeapiserver/, and python.md,
client.md and controller-runtime.md name the public modules, whose docstrings mkdocstrings puts in when the site is built.
`tests/site/test_site.py` fails if a page is out of date.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from unittest.mock import MagicMock

from fakeapiserver import PUBLIC_MODULES
from fakeapiserver.cli.manual.commands import commands
from fakeapiserver.cli.manual.overview import SUMMARIES
from fakeapiserver.cli.manual.page import command_page, topic_page
from fakeapiserver.cli.manual.topics import TOPICS
from fakeapiserver.server.control.application import control

REFERENCE: Final = Path(__file__).parents[2] / "docs/reference"
_MADE: Final = "Made from the code by `python -m tests.site.reference_pages`.\n"
# Each page of modules: its title, and what the names of its modules begin with. A module is on the first page that takes it.
_PAGES: Final = {
    "client.md": ("Client", "fakeapiserver.client"),
    "controller-runtime.md": ("Controller runtime", "fakeapiserver.controller_runtime"),
    "python.md": ("Python", "fakeapiserver"),
}


def pages() -> Iterator[tuple[Path, str]]:
    """Yields the path of each page with its text."""
    yield REFERENCE / "commands.md", _commands()
    yield REFERENCE / "test-control.md", _test_control(control(MagicMock()).openapi())
    rest = list(PUBLIC_MODULES)
    for name, (title, prefix) in _PAGES.items():
        modules = [module for module in rest if module.startswith(prefix)]
        rest = [module for module in rest if module not in modules]
        yield REFERENCE / name, _modules(title, ["fakeapiserver", *modules] if prefix == "fakeapiserver" else modules)


def _commands() -> str:
    parts = ["# Commands\n", _MADE, "A flag marked with * has no effect here and prints a warning.\n"]
    for name in SUMMARIES:
        if name in commands():
            parts += [f"## {name}\n", f"```text\n{command_page(name)}```\n"]
    for name, topic in TOPICS.items():
        parts += [f"## help {name}\n", f"{topic.summary.capitalize()}.\n", f"```text\n{topic_page(name)}```\n"]
    return "\n".join(parts)


def _test_control(document: Mapping[str, Any]) -> str:
    """A section for each path, with its methods, parameters and the fields of its body."""
    parts = [
        "# Test control\n",
        _MADE,
        "These paths are part of every server but envtest's programs, for tests in any language: plain HTTP with the server's own "
        "credentials. "
        "A caller needs the right to use the path (`nonResourceURLs`); the admin has it. Bodies are JSON. Errors are Kubernetes' Status "
        "objects. `/fakeapiserver/docs` is the same as a page of a running server, and `/fakeapiserver/openapi.json` for programs.\n",
    ]
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        parts.append(f"## {path}\n")
        for method, operation in operations.items():
            text = " ".join((operation.get("description") or operation["summary"]).split())
            parts.append(f"**{method.upper()}**: {text}\n")
            for parameter in operation.get("parameters", ()):
                described = parameter.get("description") or ""
                parts.append(f"- `{parameter['name']}` ({parameter['in']}) {described}".rstrip() + "\n")
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body and "$ref" in body:
                parts.append(_fields(schemas[body["$ref"].rpartition("/")[2]]))
    return "\n".join(parts)


def _fields(schema: Mapping[str, Any]) -> str:
    rows = [
        f"| `{name}` | {_type(field)} | {' '.join((field.get('description') or '').split()).replace('|', chr(92) + '|')} |\n"
        for name, field in schema["properties"].items()
    ]
    return f"| field | type | |\n|---|---|---|\n{''.join(rows)}"


def _type(field: Mapping[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(each) for each in field["anyOf"] if each.get("type") != "null"))
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("type", "any"))


def _modules(title: str, modules: list[str]) -> str:
    return "\n".join([f"# {title}\n", _MADE, *(f"::: {module}\n" for module in modules)])


def main() -> None:
    REFERENCE.mkdir(exist_ok=True)
    for path, text in pages():
        path.write_text(text)


if __name__ == "__main__":
    main()
