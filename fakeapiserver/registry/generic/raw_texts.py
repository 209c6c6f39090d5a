"""Remembers the text of raw fields, which Go stores and compares as text: storage here loses its spaces and the order of keys.

Upstream: k8s.io/apimachinery/pkg/runtime/types.go (RawExtension), which protobuf stores as it is and Go's JSON rewrites.
"""

from collections.abc import Mapping, Sequence
from typing import Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import FieldPath, Object, metadata
from fakeapiserver.apimachinery.schema.raw_text import RawText, Steps, found, marshalled
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.clock import Clock
from fakeapiserver.registry.generic.strategy import Strategy

Texts = Mapping[Steps, str]


class RawTexts(Struct):
    """The texts of one resource's objects in one server. `paths` are the fields that Go keeps as text."""

    paths: Sequence[FieldPath]
    # uid -> the texts that differ from what storage makes of them, for each object that this server has written.
    kept: dict[str, Texts] = msgspec.field(default_factory=dict)

    def of_stored(self, old: Object) -> Texts:
        lost = self.kept.get(metadata(old).get("uid", ""), {})
        return {at: lost.get(at) or _written(value) for at, value in self._found(old)}

    def of_new(self, obj: Object, old: Object | None) -> Texts:
        """The texts of an object that is going to be stored. A value that came without a text, because it was read from storage,
        has the stored text; Go has rewritten it if a patch looked into it."""
        values = {} if old is None else dict(self._found(old))
        before = {} if old is None else self.of_stored(old)
        texts = {}
        for at, value in self._found(obj):
            same = at in before and _written(values[at]) == _written(value)
            if isinstance(value, RawText):
                texts[at] = value.text or (marshalled(before[at]) if same else _written(value))
            else:
                texts[at] = before[at] if same else _written(value)
        return texts

    def differ(self, obj: Object, old: Object, *within: str) -> bool:
        """Reports whether any text below the field `within` differs from the stored one. An object that another server has written, from
        whose state this one was made, has no known texts: its values are compared."""
        if metadata(old).get("uid", "") not in self.kept:
            values = dict(self._found(old))
            return any(value != values.get(at) for at, value in self._found(obj) if at[: len(within)] == within)
        new, before = self.of_new(obj, old), self.of_stored(old)
        return any(text != before.get(at) for at, text in new.items() if at[: len(within)] == within)

    def keep(self, obj: Object, old: Object | None = None) -> None:
        """Remembers the texts of an object that was stored."""
        values = dict(self._found(obj))
        lost = {at: text for at, text in self.of_new(obj, old).items() if text != _written(values[at])}
        self.kept[metadata(obj)["uid"]] = lost

    def forget(self, obj: Object) -> None:
        self.kept.pop(metadata(obj).get("uid", ""), None)

    def _found(self, obj: Object) -> list[tuple[Steps, object]]:
        return [row for path in self.paths for row in found(obj, path)]


def _written(value: object) -> str:
    """The text that Go's JSON encoder writes for a value."""
    return marshalled(json.encode(value).decode())


class TextKeepingStrategy(Strategy, kw_only=True):
    """For kinds with raw fields, where another text is a change even if it says the same."""

    texts: RawTexts

    def for_server(self, clock: Clock) -> Self:
        return replace(self, texts=RawTexts(self.texts.paths))

    def on_created(self, obj: Object) -> None:
        self.texts.keep(obj)

    def on_updated(self, obj: Object, old: Object) -> None:
        self.texts.keep(obj, old)

    def on_deleted(self, resource: GroupResource, obj: Object) -> None:
        self.texts.forget(obj)
