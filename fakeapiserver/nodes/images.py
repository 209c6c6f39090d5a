"""Images: the entry points of well-known ones, and which ones can't be pulled. Pure.

Upstream: pkg/kubelet/images/image_manager.go (EnsureImageExists), github.com/distribution/reference; messages of containerd's.
"""

import re
from typing import Final, NamedTuple

from fakeapiserver.apimachinery.go.quote import go_quote


class Image(NamedTuple):
    """`entrypoint` goes in front of a container's arguments; `arguments` are there if the container has none."""

    entrypoint: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


_SHELL: Final = Image(arguments=("sh",))
# By the last part of the repository's name.
IMAGES: Final = {
    **dict.fromkeys(
        ["alpine", "bash", "busybox", "centos", "debian", "fedora", "rockylinux", "toybox", "ubuntu"], _SHELL
    ),
    "agnhost": Image(("agnhost",), ("pause",)),
    "curl": Image(("curl",)),
    "hello-world": Image(("echo", "Hello from Docker!")),
    "kubectl": Image(("kubectl",)),
    "pause": Image(("pause",)),
    "wget": Image(("wget",)),
}
# Tags and registries that stand for an image that isn't there.
ABSENT_TAGS: Final = frozenset(("does-not-exist", "doesnotexist", "invalid", "non-existent", "nonexistent"))
ABSENT_REGISTRY: Final = ".invalid"

_DOMAIN_PART: Final = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?"
_DOMAIN: Final = re.compile(rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?")
_PATH: Final = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*")
_TAG: Final = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_HASH: Final = re.compile("[a-f0-9]{64}")
_MAX_NAME: Final = 255


class _Reference(NamedTuple):
    domain: str
    path: str
    tag: str
    digest: str


def image_of(image: str) -> Image | None:
    """Returns the entry point of a well-known image, or None."""
    return IMAGES.get(image.partition("@")[0].rpartition("/")[2].partition(":")[0])


def name_problem(image: str) -> str:
    """The kubelet's message for a reference that isn't one (InvalidImageName), or ""."""
    try:
        _parse(image)
    except ValueError as error:
        quoted = go_quote(image)
        return f"Failed to apply default image tag {quoted}: couldn't parse image name {quoted}: {error}"
    return ""


def pull_problem(image: str) -> str:
    """The message with which pulling an image that can't exist fails, or ""."""
    try:
        reference = _parse(image)
    except ValueError:
        return ""
    name = f"{reference.domain}/{reference.path}"
    full = name + (f"@{reference.digest}" if reference.digest else f":{reference.tag or 'latest'}")
    failed = f"failed to pull and unpack image {go_quote(full)}: failed to resolve reference {go_quote(full)}"
    host = reference.domain.partition(":")[0]
    if host.endswith(ABSENT_REGISTRY):
        url = (
            f"https://{reference.domain}/v2/{reference.path}/manifests/{reference.digest or reference.tag or 'latest'}"
        )
        lookup = f"dial tcp: lookup {host}: no such host"
        return f"rpc error: code = Unknown desc = {failed}: failed to do request: Head {go_quote(url)}: {lookup}"
    if reference.tag in ABSENT_TAGS and not reference.digest:
        return f"rpc error: code = NotFound desc = {failed}: {full}: not found"
    return ""


def _parse(image: str) -> _Reference:
    """The reference with its defaults. ValueError: it is invalid (upstream: ParseNormalizedNamed)."""
    if _HASH.fullmatch(image):
        raise ValueError(f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings")
    domain, slash, rest = image.partition("/")
    if not slash or not (set(".:") & set(domain) or domain == "localhost" or domain.lower() != domain):
        domain, rest = "docker.io", image
    if domain in ("docker.io", "index.docker.io"):
        domain, rest = "docker.io", rest if "/" in rest else f"library/{rest}"
    named, _, digest = rest.partition("@")
    path, colon, tag = named.partition(":")
    if path.lower() != path:
        raise ValueError(f"invalid reference format: repository name ({path}) must be lowercase")
    valid = (
        _DOMAIN.fullmatch(domain)
        and _PATH.fullmatch(path)
        and (not colon or _TAG.fullmatch(tag))
        and ("@" not in rest or _DIGEST.fullmatch(digest))
    )
    if not valid:
        raise ValueError("invalid reference format")
    if len(path) > _MAX_NAME:
        raise ValueError(f"repository name must not be more than {_MAX_NAME} characters")
    return _Reference(domain, path, tag, digest)
