"""The volume by which admission mounts a service account's token in a pod. Its random name is all that the specs of a template's pods
differ in, so that specs are known without it.
"""

import re
from typing import Final

_NAME: Final = re.compile(rb'"(kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5})"')
# No JSON text has this byte.
_SOME_NAME: Final = b"\0"


def without_name(text: bytes) -> tuple[bytes, bytes]:
    """Returns a JSON text with a byte in place of the first such name, wherever it is a whole string, and the name with its quotes. The
    name is empty, and the text as it was, if there is no such name, and if the name is also a part of other strings."""
    match = _NAME.search(text)
    if match is None or text.count(match[0]) != text.count(match[1]):
        return text, b""
    return text.replace(match[0], _SOME_NAME), match[0]


def with_name(text: bytes, name: bytes) -> bytes:
    """Returns the JSON text that `without_name` has taken the name out of."""
    return text.replace(_SOME_NAME, name) if name else text
