"""Decodes bodies with a spec that was seen before: the objects of one template have equal specs, and differ in little else.

A spec is known by its bytes, once decoding it has found nothing to complain about. The rest of such a body is decoded with an empty spec in
its place. Only kinds whose spec is decoded and defaulted on its own have known specs (`Strategy.spec_is_decoded_alone`).
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.endpoints.negotiation.body import Body

_MOST: Final = 512
# Bytes of the largest spec that is remembered.
_LARGEST: Final = 16 * 1024
_SPEC: Final = "spec"
_EMPTY: Final = b"{}"
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode: Final = msgspec.json.Encoder().encode


class SentSpec:
    """The spec of a body in JSON, and the body without it. `known` is the spec's decoded form as bytes; None: the spec is new."""

    __slots__ = ("_body", "_known_specs", "_members", "_text", "known")

    def __init__(self, body: Body, members: dict[str, msgspec.Raw], known_specs: dict[bytes, bytes]) -> None:
        self._body, self._members, self._known_specs = body, members, known_specs
        self._text = bytes(members[_SPEC])
        self.known = known_specs.get(self._text)

    def rest(self) -> Body:
        """Returns the body with an empty spec. Decoding it raises StatusError where it has anything to complain about."""
        members: dict[str, msgspec.Raw] = {**self._members, _SPEC: msgspec.Raw(_EMPTY)}
        return replace(self._body, data=_encode(members), validation="Strict", warnings=[], empties={})

    def remember(self, obj: Object) -> None:
        """Remembers the spec of the decoded object."""
        if len(self._known_specs) >= _MOST:
            self._known_specs.clear()
        self._known_specs[self._text] = _encode(obj[_SPEC])


def sent_spec(body: Body) -> SentSpec | None:
    """Returns the spec of a body in JSON; None if the kind has no known specs, and for large specs, blanks and repeated keys."""
    known_specs = body.kind.known_specs
    if known_specs is None:
        return None
    try:
        members = _members(body.data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if _SPEC not in members or len(members[_SPEC]) > _LARGEST or not _is_compact(body.data, members):
        return None
    return SentSpec(body, members, known_specs)


def _is_compact(data: bytes, members: dict[str, msgspec.Raw]) -> bool:
    """Reports whether a text has these members, each once, and nothing else around them: braces, quotes, colons and commas."""
    return len(data) == 1 + sum(len(key) + len(value) + 4 for key, value in members.items())
