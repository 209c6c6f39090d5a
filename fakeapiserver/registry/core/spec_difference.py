"""What an update changes of fields that are fixed, as text for the refusal.

Upstream: k8s.io/apimachinery/pkg/util/diff/diff.go. Upstream prints its internal types, with all their unset fields; here
the wire form stands for them, so the text after the sentence differs.
"""

import difflib
import json

from fakeapiserver.apimachinery.meta import Object


def difference(before: Object, after: Object) -> str:
    """A unified diff of the two as indented JSON, three lines of context around each change."""
    old, new = (json.dumps(spec, indent=1, sort_keys=True).splitlines() for spec in (before, after))
    lines = list(difflib.unified_diff(old, new, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)
