"""The changes of an update to immutable fields, as text for the refusal.

Upstream: k8s.io/apimachinery/pkg/util/diff/diff.go.
"""

import difflib
import json

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.internal_form import InternalForm, in_version, internal_form


class Difference(str):
    """A refusal's text that ends with a difference, in the newest version's form, and its parts:

    other versions have other types.
    """

    detail: str
    before: InternalForm
    after: InternalForm

    def __new__(cls, detail: str, before: InternalForm, after: InternalForm) -> "Difference":
        made = super().__new__(cls, f"{detail}\n{text_difference(before, after)}")
        made.detail, made.before, made.after = detail, before, after
        return made

    def in_version(self, version: str) -> str:
        return f"{self.detail}\n{text_difference(in_version(self.before, version), in_version(self.after, version))}"


def difference(detail: str, before: Object, after: Object, kind: str) -> Difference:
    """A text, then a unified diff of two values as indented JSON of the internal type `kind`, three lines of context around each
    change."""
    return Difference(detail, internal_form(before, kind), internal_form(after, kind))


def text_difference(before: Object, after: Object) -> str:
    """Returns the difference of two values in Go's form."""
    old, new = _shown(before), _shown(after)
    lines = list(difflib.unified_diff(old, new, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


def _shown(value: Object) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.splitlines()
