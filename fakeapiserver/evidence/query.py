"""Queries for requests: `patch deployments/status`, `* secrets`, `delete pods default/web-*`."""

from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from fakeapiserver.evidence.entry import RequestEntry

VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
READS: Final = frozenset({"get", "list"})
_EXAMPLES: Final = '"patch deployments/status", "* secrets", "delete pods default/web-*"'


class Query(Struct, frozen=True):
    """Shell patterns for a request's fields, each of which must match.

    `verbs` may be several with commas between. The resource `*` matches with and without a subresource, as in RBAC's rules; any other
    resource only with the subresource of the query.
    """

    verbs: tuple[str, ...]
    resource: str
    group: str
    subresource: str
    namespace: str
    name: str

    def matches(self, entry: RequestEntry) -> bool:
        """Reports whether the request is one of those."""
        return any(fnmatchcase(entry.verb, verb) for verb in self.verbs) and self.nearly_matches(entry)

    def nearly_matches(self, entry: RequestEntry) -> bool:
        """Reports whether all but the verb matches."""
        return (
            entry.resource != ""
            and fnmatchcase(entry.resource, self.resource)
            and (self.resource == "*" or fnmatchcase(entry.subresource, self.subresource))
            and fnmatchcase(entry.group, self.group)
            and fnmatchcase(entry.namespace, self.namespace)
            and fnmatchcase(entry.name, self.name)
        )


def parse(text: str) -> Query:
    """Returns the query `VERB[,VERB...] RESOURCE[.GROUP][/SUBRESOURCE] [[NAMESPACE/]NAME]`. Raises ValueError with examples."""
    words = text.split()
    if len(words) not in (2, 3):
        raise ValueError(f"a query is a verb, a resource and perhaps namespace/name, such as {_EXAMPLES}; not {text!r}")
    verbs = tuple(words[0].split(","))
    for verb in verbs:
        if not any(fnmatchcase(known, verb) for known in VERBS):
            near = get_close_matches(verb, VERBS, 1)
            hint = f"did you mean {near[0]}?" if near else f"the verbs are {', '.join(VERBS)}"
            raise ValueError(f"unknown verb {verb!r} in {text!r}: {hint} Examples: {_EXAMPLES}")
    full, _, subresource = words[1].partition("/")
    resource, _, group = full.partition(".")
    namespace, slash, name = words[2].partition("/") if len(words) == 3 else ("*", "/", "*")
    if not slash:
        namespace, name = "*", namespace
    return Query(verbs, resource, group or "*", subresource, namespace, name)
