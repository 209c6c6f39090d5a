"""The shape of the code: small files and functions, few imports, folders that can be overlooked, pure packages.

What a rule does not apply to is listed with its reason.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("fakeapiserver", "auth", "admission")
LONGEST_FILE: Final = 500
LONGEST_FUNCTION: Final = 60
LONGEST_CLASS: Final = 400
# Besides self. Eight functions have more, which callers pass by name.
MOST_PARAMETERS: Final = 7
MANY_PARAMETERS: Final = 8
MOST_IMPORTS: Final = 25
MOST_MODULES: Final = 25
# One file per thing, found by its name.
CATALOGUES: Final = frozenset(("admission/plugins", "fakeapiserver/controllers"))
# Libraries that a function may import, since they take long: what the function does is seldom asked for.
HEAVY: Final = frozenset(
    (
        "cryptography",  # 60 ms; certificates and keys
        "jwt",  # loads cryptography
        "OpenSSL",  # loads cryptography; TLS with client certificates
        "nacl",  # one provider of encryption at rest; an extra
        "yaml",  # 20 ms; JSON is what most clients send
        "re2",  # patterns of custom resources
        "httptools",  # answers of webhooks and of other servers
        "prometheus_client",  # 100 ms
        "grpc",  # an extra
        "uvloop",  # only the main thread's loop, where it is installed
    )
)
# What is larger than its limit today. A file or function leaves this list when it is split; none may be added.
LONGER: Final = frozenset(
    (
        "fakeapiserver/languages/cel/declarations.py",  # a table
    )
)
LONGER_FUNCTIONS: Final = frozenset(
    (
        "fakeapiserver/controller_runtime/markers.py:webhook",  # a docstring
    )
)
KNOW_MORE: Final = frozenset(("fakeapiserver/server/apiserver.py",))
PURE: Final = (
    "fakeapiserver/apimachinery",
    "fakeapiserver/languages",
    "fakeapiserver/apis",
    "fakeapiserver/storage/etcd/codec.py",
    "fakeapiserver/storage/etcd/messages.py",
    "fakeapiserver/storage/bucket.py",
    "fakeapiserver/storage/mvcc.py",
)
# Modules that read the outside world: sockets, the clock, chance, threads, processes, the event loop.
IMPURE_MODULES: Final = frozenset(
    (
        *("asyncio", "http", "httpx", "logging.handlers", "multiprocessing", "random", "secrets", "socket", "ssl"),
        *("subprocess", "threading", "time", "urllib.request", "uvicorn", "fastapi"),
    )
)
PURE_USES: Final = {
    "fakeapiserver/apimachinery/depth.py": {"threading"},  # for the stack of a thread that the caller waits for
    "fakeapiserver/languages/gotemplate/sprig/functions.py": {"random"},  # for the type of the source that is passed in
    "fakeapiserver/languages/gotemplate/sprig/moments.py": {"random"},  # the same
    "fakeapiserver/languages/jq/builtins/dates.py": {"time"},  # gmtime and strptime convert and read no clock
}
# Who may import a framework.
FRAMEWORKS: Final = {
    "grpc": ("fakeapiserver/storage/etcd/connection.py",),
    "fastapi": ("fakeapiserver/asgi", "fakeapiserver/server/control"),
    "uvicorn": ("fakeapiserver/asgi", "fakeapiserver/server/http", "fakeapiserver/controller_runtime"),
}


@cache
def sources() -> tuple[Path, ...]:
    """All modules of the package; auth and admission by their real folders."""
    return tuple(
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "__pycache__" not in path.parts and not any(parent.is_symlink() for parent in path.parents)
    )


@cache
def tools() -> tuple[Path, ...]:
    """All modules of the comparison tools, to which the limits of size apply as well."""
    return tuple(sorted((ROOT / "conformance").rglob("*.py")))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def imported(path: Path, *, everywhere: bool = True) -> set[str]:
    """The modules that a file imports, by their full names; without `everywhere` only those at its top."""
    nodes = ast.walk(tree(path)) if everywhere else iter(tree(path).body)
    modules = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module}
    return modules


def test_files_are_short() -> None:
    long = {
        named(path): lines
        for path in (*sources(), *tools())
        if (lines := len(path.read_text().splitlines())) > LONGEST_FILE
    }
    assert {name: lines for name, lines in long.items() if name not in LONGER} == {}
    assert long.keys() >= LONGER, "these are short now: take them off the list"


def test_functions_are_short() -> None:
    long = {
        f"{named(path)}:{function.name}": lines
        for path in (*sources(), *tools())
        for function in functions(path)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > LONGEST_FUNCTION
    }
    assert {name: lines for name, lines in long.items() if name not in LONGER_FUNCTIONS} == {}
    assert long.keys() >= LONGER_FUNCTIONS, "these are short now: take them off the list"


def test_classes_are_short() -> None:
    long = {
        f"{named(path)}:{node.name}": lines
        for path in sources()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and (lines := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_CLASS
    }
    assert long == {}


def test_functions_have_few_parameters() -> None:
    many = {
        f"{named(path)}:{function.name}": count
        for path in sources()
        for function in functions(path)
        for given in [function.args]
        if (count := sum(each.arg != "self" for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)))
        > MOST_PARAMETERS
    }
    assert len(many) <= MANY_PARAMETERS, many


def test_a_module_knows_few_others() -> None:
    many = {
        named(path): count
        for path in sources()
        if (count := sum(module.startswith("fakeapiserver") for module in imported(path, everywhere=False)))
        > MOST_IMPORTS
    }
    assert {name: count for name, count in many.items() if name not in KNOW_MORE} == {}
    assert many.keys() >= KNOW_MORE, "these know few now: take them off the list"


def test_a_folder_can_be_overlooked() -> None:
    folders = {path.parent for path in (*sources(), *tools())}
    full = {
        named(folder): count
        for folder in folders
        if (count := len([path for path in folder.glob("*.py") if path.name != "__init__.py"])) > MOST_MODULES
    }
    assert {name: count for name, count in full.items() if name not in CATALOGUES} == {}


def test_an_init_file_has_no_logic() -> None:
    """Tables and what a package exports may be there; functions and classes have files named after them.

    Each controller's package has its `new(context)` there, which the manager calls, and `cli` the command's entry point.
    """
    logic = {
        named(path): [
            node.name
            for node in tree(path).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        ]
        for path in sources()
        if path.name == "__init__.py"
    }
    allowed = {"__getattr__", "new"}
    found = {name: names for name, names in logic.items() if not set(names) <= allowed}
    assert found.keys() == {"fakeapiserver/cli/__init__.py"}


def test_functions_import_heavy_libraries_only() -> None:
    """Our own modules are imported at the top; those in `lazy_modules.py` are loaded on first use nevertheless.

    pytest asks each global of a plugin for attributes, which would load lazy modules: there functions import them.
    """
    inside = {
        f"{named(path)}:{node.lineno}": module
        for path in sources()
        if named(path) != "fakeapiserver/testing/plugin.py"
        for function in functions(path)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name]
    }
    assert {place: module for place, module in inside.items() if module.partition(".")[0] not in HEAVY} == {}
    assert len(inside) < 80


@pytest.mark.parametrize("package", PURE)
def test_a_pure_package_reads_nothing_of_the_world(package: str) -> None:
    files = [path for path in sources() if named(path).startswith(package)]
    assert files
    impure = {
        named(path): sorted((imported(path) & IMPURE_MODULES) - PURE_USES.get(named(path), set())) for path in files
    }
    assert {name: modules for name, modules in impure.items() if modules} == {}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_stays_where_it_is_used(framework: str) -> None:
    users = {
        named(path) for path in sources() if any(module.partition(".")[0] == framework for module in imported(path))
    }
    assert {name for name in users if not name.startswith(FRAMEWORKS[framework])} == set()


def test_the_standard_library_is_known_by_its_names() -> None:
    """A module that is refused above must be one that exists, or the rule could not fail."""
    roots = {name.partition(".")[0] for name in IMPURE_MODULES} - {"fastapi", "httpx", "uvicorn"}
    assert roots <= sys.stdlib_module_names


def test_locals_are_named_by_what_they_hold() -> None:
    """`found` says that something was looked for; at most one function in a hundred may say no more."""
    total, vague = 0, []
    for path in sources():
        for function in functions(path):
            total += 1
            names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            names |= {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
            if "found" in names:
                vague.append(f"{named(path)}:{function.name}")
    assert len(vague) * 100 <= total, vague
