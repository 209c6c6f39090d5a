"""Imports each package of fakeapiserver before any other: names those that can't be, which is so when they import each other.

All of it is compiled, and what others have made is imported, before a child is forked for each.
"""

import importlib
import os
import pkgutil
import sys
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from types import CodeType

import fakeapiserver

_codes: dict[str, CodeType | None] = {}
_compile = SourceFileLoader.get_code


def _once(loader: SourceFileLoader, name: str) -> CodeType | None:
    if name not in _codes:
        _codes[name] = _compile(loader, name)
    return _codes[name]


def main() -> None:
    SourceFileLoader.get_code = _once  # type: ignore[method-assign]
    found = pkgutil.walk_packages(fakeapiserver.__path__, "fakeapiserver.")
    packages = [module.name for module in found if module.ispkg]
    for name in packages:
        with suppress(ImportError):  # its child process reports the error
            importlib.import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "fakeapiserver"]:
        del sys.modules[name]
    failed = [name for name in packages if not _imports(name)]
    sys.exit(f"these can't be imported first: {', '.join(failed)}" if failed else 0)


def _imports(name: str) -> bool:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        importlib.import_module(name)
    except BaseException as error:
        print(f"{name}: {error}", file=sys.stderr)
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
