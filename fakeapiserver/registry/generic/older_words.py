"""What servers of older Kubernetes versions say where the newest uses other words. What only one kind says is in its own file.

Upstream: the histories of k8s.io/apimachinery/pkg/util/validation, k8s.io/apimachinery/pkg/api/validate/content and sigs.k8s.io/json.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from fakeapiserver.apimachinery.field import Error


class _Words(NamedTuple):
    """`until`: the last version that says `older` where the newest says what the pattern finds."""

    until: str
    newest: re.Pattern[str]
    older: str


_EMBEDDED: Final = "VolumeSource|PersistentVolumeSource|ProbeHandler|IngressRuleValue|RuleWithOperations|Rule"
_WORDS: Final = (
    _Words("v1.34", re.compile(r"(must be no more than \d+) bytes"), r"\1 characters"),
    _Words("v1.34", re.compile("a valid label key must"), "a qualified name must"),
    _Words("v1.35", re.compile("when pod `restartPolicy` is"), "when `restartPolicy` is"),
    # the names of embedded structs
    _Words("v1.34", re.compile(rf"(?<=\.)(?:{_EMBEDDED})\.(?=\S* of type )"), ""),
)

_NO_REVISION: Final = "must be specified for an update"

Reword = Callable[[str], str]


@cache
def reworded(version: str) -> Reword | None:
    """Newest words -> those of a version; None if it has no others."""
    rows = [row for row in _WORDS if version <= row.until]
    if not rows:
        return None

    def reword(text: str) -> str:
        for row in rows:
            text = row.newest.sub(row.older, text)
        return text

    return reword


def reworded_error(error: Error, version: str) -> Error:
    """As a version tells it, which isn't the newest."""
    reword = reworded(version)
    detail = error.detail if reword is None else reword(error.detail)
    # 1.33 shows values as Go does; of those only what can be told without Go's types is done here
    if version == "v1.33" and error.value is None and error.reason == "FieldValueInvalid":
        return replace(error, detail=detail, value="null")
    if version == "v1.33" and detail == _NO_REVISION:
        return replace(error, detail=detail, value=Raw(b"0x0"))
    return replace(error, detail=detail)
