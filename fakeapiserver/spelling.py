"""The known word that an unknown one resembles, for "did you mean"."""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(word: str, known: Iterable[str], likeness: float = 0.75) -> str:
    """Returns the known word that resembles `word` most; a unique beginning counts. "" if none does.

    likeness: from 0 to 1, what difflib's ratio must reach.
    """
    lower = {name.lower(): name for name in known}
    if matches := get_close_matches(word.lower(), lower, 1, likeness):
        return lower[matches[0]]
    beginnings = [name for name in lower if len(word) > 2 and name.startswith(word.lower())]
    return lower[beginnings[0]] if len(beginnings) == 1 else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns ` (did you mean 'nodes'?)`, to follow the unknown word in a sentence, or ""."""
    match = closest(word, known, 0.6)
    return f" (did you mean {match!r}?)" if match else ""
