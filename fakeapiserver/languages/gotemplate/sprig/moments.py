"""Functions of a clock and a source of random values: dates, durations, random strings."""

import base64
import random as random_module
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from fakeapiserver.apimachinery.duration import format_duration, parse_duration
from fakeapiserver.languages.gotemplate.sprig.conversions import atoi
from fakeapiserver.languages.gotemplate.times import ZERO, formatted, parsed
from fakeapiserver.languages.gotemplate.values import MAX_OUTPUT, TemplateError, Time


class Moments:
    """Functions of a clock and a source of chance."""

    def __init__(self, now: Callable[[], float], random: random_module.Random) -> None:
        self._now = now
        self._random = random

    def moment(self, value: Any) -> Time:
        if isinstance(value, Time):
            return value
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return Time(float(value) if is_whole and abs(value) < 1 << 36 else self._now())

    def date(self, layout: str, value: Any) -> str:
        return formatted(layout, self.moment(value))

    def date_in_zone(self, layout: str, value: Any, zone: str) -> str:
        return formatted(layout, self.moment(value), zone)

    def html_date(self, value: Any) -> str:
        return formatted("2006-01-02", self.moment(value))

    def html_date_in_zone(self, value: Any, zone: str) -> str:
        return formatted("2006-01-02", self.moment(value), zone)

    def date_modify(self, change: str, value: Time) -> Time:
        try:
            return Time(value.seconds + parse_duration(change))
        except ValueError:
            return value

    def must_date_modify(self, change: str, value: Time) -> Time:
        return Time(value.seconds + parse_duration(change))

    def to_date(self, layout: str, text: str) -> Time:
        try:
            return parsed(layout, text)
        except TemplateError:
            return ZERO

    def must_to_date(self, layout: str, text: str) -> Time:
        return parsed(layout, text)

    def ago(self, value: Any) -> str:
        return format_duration(round(self._now() - self.moment(value).seconds))

    def duration(self, value: Any) -> str:
        return format_duration(atoi(value) if isinstance(value, str) else value if isinstance(value, int) else 0)

    def duration_round(self, value: Any) -> str:
        seconds = 0.0
        if isinstance(value, str):
            try:
                seconds = parse_duration(value)
            except ValueError:
                seconds = 0.0
        elif isinstance(value, Time):
            seconds = self._now() - value.seconds
        elif isinstance(value, int):
            seconds = value * 1e-9
        seconds = abs(seconds)
        for unit, size in (("y", 31536000), ("mo", 2592000), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
            if seconds > size:
                return f"{int(seconds // size)}{unit}"
        return "0s"

    def unix_epoch(self, value: Time) -> str:
        return str(int(value.seconds // 1))

    def chars(self, alphabet: Sequence[str]) -> Callable[..., Any]:
        def run(count: int) -> str:
            if not 0 <= count <= MAX_OUTPUT:
                raise TemplateError("the text becomes too long")
            return "".join(self._random.choices(alphabet, k=count))

        return run

    def rand_int(self, least: int, most: int) -> int:
        if most <= least:
            raise TemplateError("invalid argument to Intn")
        return self._random.randrange(least, most)

    def rand_bytes(self, count: int) -> str:
        if not 0 <= count <= MAX_OUTPUT:
            raise TemplateError("the text becomes too long")
        return base64.b64encode(self._random.randbytes(count)).decode()

    def shuffle(self, text: str) -> str:
        return "".join(self._random.sample(text, len(text)))

    def current(self) -> Time:
        return Time(self._now())

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))
