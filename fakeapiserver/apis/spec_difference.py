"""What an update changes of fields that are fixed, as text for the refusal.

Upstream: k8s.io/apimachinery/pkg/util/diff/diff.go.
"""

import difflib
import json

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.internal_form import internal_form


def difference(before: Object, after: Object, kind: str) -> str:
    """A unified diff of the two as indented JSON of the internal type `kind`, three lines of context around each change."""
    return text_difference(internal_form(before, kind), internal_form(after, kind))


def text_difference(before: Object, after: Object) -> str:
    """Of two values that have Go's form already."""
    old, new = _shown(before), _shown(after)
    lines = list(difflib.unified_diff(old, new, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


def _shown(value: Object) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.splitlines()
