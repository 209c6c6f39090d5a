"""The one source of chance of a server: uids, generated names, addresses, ports, orders and pauses.

Seeded, each value depends on the seed, on its use, and on how many values that use has had before, but not on others: two runs in which
requests overlap in another order still give an object the same uid. Keys and tokens never follow from a seed.
"""

import os
import random
from hashlib import blake2b
from typing import Final

# So many uses are counted; then counting begins again, with other values.
_MOST_COUNTED: Final = 100_000
_SEEDS: Final = 2**32


class Chance:
    """Draws values. With the same `seed` and `salt`, it draws the same values for the same uses.

    `salt`: distinguishes servers that continue a saved state, in which values of the same seed may be used already."""

    def __init__(self, seed: int | None = None, salt: int = 0) -> None:
        self.seed = seed
        self._key = f"{seed} {salt}".encode()
        self._counts: dict[tuple[str, ...], int] = {}
        self._epoch = 0

    def uid(self, *use: str) -> str:
        """A random UUID, version 4."""
        return _uuid(os.urandom(16) if self.seed is None else self._digest(use))

    def source(self, *use: str) -> random.Random:
        """A source of random numbers for one decision, or for a component that keeps it."""
        return _ANY if self.seed is None else random.Random(self._digest(use))

    def _digest(self, use: tuple[str, ...]) -> bytes:
        count = self._counts.get(use, 0)
        if not count and len(self._counts) >= _MOST_COUNTED:
            self._counts.clear()
            self._epoch += 1
        self._counts[use] = count + 1
        text = "\0".join((*use, str(count), str(self._epoch)))
        return blake2b(text.encode(), key=self._key, digest_size=16).digest()


def _uuid(chance: bytes) -> str:
    """Returns the UUID of version 4 with these 16 bytes, as `str(uuid.UUID(bytes=chance, version=4))` does in three times the time."""
    number = bytearray(chance)
    number[6] = number[6] & 0x0F | 0x40
    number[8] = number[8] & 0x3F | 0x80
    text = number.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def draw_seed() -> int:
    """A seed that is short enough to be typed."""
    return random.SystemRandom().randrange(_SEEDS)


_ANY: Final = random.Random()
# Chance without a seed, for code that belongs to no server.
UNSEEDED: Final = Chance()
