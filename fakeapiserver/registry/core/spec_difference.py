"""What an update changes of fields that are fixed, as text for the refusal.

Upstream: k8s.io/apimachinery/pkg/util/diff/diff.go.
"""

import difflib
import json

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.internal_form import internal_form


def difference(before: Object, after: Object, kind: str) -> str:
    """A unified diff of the two as indented JSON of the internal type `kind`, three lines of context around each change."""
    old, new = (_shown(internal_form(spec, kind)) for spec in (before, after))
    lines = list(difflib.unified_diff(old, new, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


def _shown(value: Object) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.splitlines()
