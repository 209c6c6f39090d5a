"""The type of a function's implementation."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
