"""The spec of a body in JSON, which may be known (`KnownSpecs`). The rest of the body is then decoded without it."""

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.endpoints.negotiation.body import Body
from fakeapiserver.registry.generic.kind import LARGEST_SPEC, KnownSpecs

_SPEC: Final = "spec"
_EMPTY: Final = msgspec.Raw(b"{}")
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode: Final = msgspec.json.Encoder().encode


class SentSpec(Struct, frozen=True):
    """A spec as text, and its body. `known` is a new object for the spec; None: the spec isn't known."""

    body: Body
    members: dict[str, msgspec.Raw]
    text: bytes
    specs: KnownSpecs
    known: Object | None

    def rest(self) -> Body:
        """Returns the body with an empty spec. Decoding it raises StatusError where it has anything to complain about."""
        members = {**self.members, _SPEC: _EMPTY}
        return replace(self.body, data=_encode(members), validation="Strict", warnings=[], empties={})

    def remember(self, obj: Object) -> None:
        """Remembers the spec of the decoded object."""
        self.specs.add(self.text, obj[_SPEC])


def sent_spec(body: Body) -> SentSpec | None:
    """Returns the spec of a body in JSON; None if the kind has no known specs, and for large specs, blanks and repeated keys."""
    specs = body.kind.known_specs
    if specs is None:
        return None
    try:
        members = _members(body.data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if _SPEC not in members or len(members[_SPEC]) > LARGEST_SPEC or not _is_compact(body.data, members):
        return None
    text = bytes(members[_SPEC])
    return SentSpec(body, members, text, specs, specs.find(text))


def _is_compact(data: bytes, members: dict[str, msgspec.Raw]) -> bool:
    """Reports whether a text has these members, each once, and nothing else around them: braces, quotes, colons and commas."""
    return len(data) == 1 + sum(len(key) + len(value) + 4 for key, value in members.items())
