"""The program of the single file: the `fakeapiserver` command.

It is Python itself for the command lines with which the package starts itself again (`-m fakeapiserver …`, `-I -S SCRIPT …`).
"""

import os
import runpy
import sys

_OPTIONS = (
    "-E",
    "-I",
    "-P",
    "-S",
)  # they have no effect in a frozen program, which reads neither variables nor folders


def main() -> None:
    # a server in the background outlives the command that started it, whose unpacked files go with it: each process has its own
    os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
    words = sys.argv[1:]
    while words and words[0] in _OPTIONS:
        words.pop(0)
    match words:
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            exec(code, {"__name__": "__main__"})
        case ["-m", module, *rest]:
            sys.argv = [module, *rest]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [script, *rest] if script.endswith(".py"):
            sys.argv = [script, *rest]
            runpy.run_path(script, run_name="__main__")
        case _:
            from fakeapiserver import cli

            sys.exit(cli.main())


main()
