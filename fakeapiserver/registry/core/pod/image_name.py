"""The default pull policy by an image's name.

Upstream: pkg/util/parsers/parsers.go, github.com/distribution/reference.
"""

import re
from functools import lru_cache
from typing import Final

_LABEL: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
_WORD: Final = r"[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_REFERENCE: Final = re.compile(
    rf"(?P<name>{_DOMAIN}/{_WORD}(?:/{_WORD})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.A,
)
_IDENTIFIER: Final = re.compile(r"[a-f0-9]{64}")
_DIGEST_LENGTH: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
_LONGEST_NAME: Final = 255
# Characters of an image that is looked at. Only a registry's domain could make a valid one longer.
_LONGEST_IMAGE: Final = 4096


def pull_policy(image: str) -> str:
    """`Always` for the tag latest and for no tag, else IfNotPresent; invalid names are left to validation."""
    return "Always" if len(image) <= _LONGEST_IMAGE and _tag(image) == "latest" else "IfNotPresent"


@lru_cache(maxsize=1024)
def _tag(image: str) -> str:
    if _IDENTIFIER.fullmatch(image):
        return ""
    domain, remainder = _split_domain(image)
    if (path := remainder.partition(":")[0]) != path.lower():
        return ""
    match = _REFERENCE.fullmatch(f"{domain}/{remainder}")
    if not match or len(match["name"].removeprefix(f"{domain}/")) > _LONGEST_NAME:
        return ""
    digest: str = match["digest"] or ""
    if digest:
        algorithm, _, digits = digest.partition(":")
        if _DIGEST_LENGTH.get(algorithm) != len(digits) or digits != digits.lower():
            return ""
    return match["tag"] or ("" if digest else "latest")


def _split_domain(image: str) -> tuple[str, str]:
    domain, slash, remainder = image.partition("/")
    is_path = not ({".", ":"} & set(domain)) and domain != "localhost" and domain.lower() == domain
    if not slash or is_path:
        domain, remainder = "docker.io", image
    if domain in ("docker.io", "index.docker.io"):
        domain = "docker.io"
        if "/" not in remainder:
            remainder = f"library/{remainder}"
    return domain, remainder
