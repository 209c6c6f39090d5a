"""How the command says what is wrong: one line on standard error, and an exit status."""

import sys


def complain(text: str, status: int) -> int:
    print(f"fakeapiserver: {text}", file=sys.stderr)
    return status
