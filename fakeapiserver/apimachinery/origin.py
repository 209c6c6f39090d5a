"""The origin of a refusal: the lines of code that made it, for the logger `fakeapiserver.refusals` at DEBUG.

`fakeapiserver serve -v=4` and `pytest --log-level=DEBUG` set that level. Each cause of a 422 is logged with the rule
that found it and
that rule's callers, innermost first; every other refusal with the place where it was raised:

    POST '/api/v1/namespaces/default/services' 422: spec.ports[0].port: Invalid value: must be between 1 and 65535, inclusive
      fakeapiserver/registry/core/field_formats.py:53 port_errors
      fakeapiserver/registry/core/service/validation.py:164 _each_port_errors

At other levels nothing is recorded.
"""

import logging
import sys
from collections.abc import Iterable
from inspect import CO_COROUTINE
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Final

log = logging.getLogger("fakeapiserver.refusals")

_ROOT: Final = f"{Path(__file__).parents[2]}/"
_PACKAGE: Final = f"{_ROOT}fakeapiserver/"
# What only words an error.
_WORDING: Final = frozenset(f"{_PACKAGE}apimachinery/{name}.py" for name in ("origin", "field", "errors"))
# This many calls of an exception are logged, from the innermost: the others are the same for each request.
_RAISED: Final = 4


def wanted() -> bool:
    """Reports whether refusals are logged."""
    return log.isEnabledFor(logging.DEBUG)


def here() -> tuple[str, ...]:
    """Returns the calls that lead here, the innermost first, up to the coroutine that began them.

    Empty if the logger is off.
    """
    return tuple(_places(_calls(sys._getframe(1)))) if wanted() else ()


def of_exception(error: BaseException) -> tuple[str, ...]:
    """Returns the calls that raised a caught exception, the innermost first."""
    return tuple(_places(reversed(list(walk_tb(error.__traceback__)))))[:_RAISED]


def _calls(frame: FrameType | None) -> Iterable[tuple[FrameType, int]]:
    while frame is not None and not frame.f_code.co_flags & CO_COROUTINE:
        yield frame, frame.f_lineno
        frame = frame.f_back


def _places(calls: Iterable[tuple[FrameType, int]]) -> Iterable[str]:
    for frame, line in calls:
        code = frame.f_code
        # A comprehension is a frame of its own, with its function's next.
        if code.co_filename.startswith(_PACKAGE) and code.co_filename not in _WORDING and code.co_name[0] != "<":
            yield f"{code.co_filename.removeprefix(_ROOT)}:{line} {code.co_name}"
