"""Tests which images can't be pulled, and what a kubelet reports about them."""

import pytest

from fakeapiserver.nodes.images import name_problem, pull_problem


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("nginx", ""),
        ("nginx:1.27", ""),
        ("localhost:5000/a/b_c.d--e@sha256:" + "a" * 64, ""),
        ("[fd00::1]:5000/a", ""),
        ("Registry/app", ""),  # a domain may have upper case
        ("UPPER", "invalid reference format: repository name (library/UPPER) must be lowercase"),
        ("a/UPPER:1", "invalid reference format: repository name (a/UPPER) must be lowercase"),
        ("app:x y", "invalid reference format"),
        ("app:", "invalid reference format"),
        ("app@sha256:12", "invalid reference format"),
        ("-app", "invalid reference format"),
        ("a//b", "invalid reference format"),
        ("a" * 64, f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings"),
    ],
)
def test_names_that_are_no_reference(image: str, message: str) -> None:
    begin = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": '
    assert name_problem(image) == (begin + message if message else "")


def failed(image: str) -> str:
    return f'failed to pull and unpack image "{image}": failed to resolve reference "{image}"'


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("nginx:1.27", ""),
        ("UPPER:nonexistent", ""),  # its name is the problem
        (
            "foo:non-existent",
            f"rpc error: code = NotFound desc = {failed('docker.io/library/foo:non-existent')}: "
            "docker.io/library/foo:non-existent: not found",
        ),
        (
            "registry.invalid/app",
            f"rpc error: code = Unknown desc = {failed('registry.invalid/app:latest')}: failed to do request: "
            'Head "https://registry.invalid/v2/app/manifests/latest": dial tcp: lookup registry.invalid: no such host',
        ),
        *((f"quay.io/a/b:{tag}", None) for tag in ("nonexistent", "does-not-exist", "doesnotexist", "invalid")),
    ],
)
def test_images_that_cannot_exist(image: str, message: str | None) -> None:
    found = pull_problem(image)
    assert found == message if message is not None else found.endswith(f"{image}: not found")
