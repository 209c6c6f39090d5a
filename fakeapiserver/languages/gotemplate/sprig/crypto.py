"""Digests, and encodings of bytes as text."""

import hashlib
from collections.abc import Callable
from typing import Any


def decoded(decode: Callable[[bytes], bytes], name: str) -> Callable[..., Any]:
    def run(text: str) -> str:
        try:
            return decode(text.encode()).decode("utf-8", "replace")
        except ValueError:
            return f"illegal {name} data at input byte 0"

    return run


def sum_of(algorithm: str) -> Callable[..., Any]:
    def run(text: str) -> str:
        return hashlib.new(algorithm, text.encode()).hexdigest()

    return run
