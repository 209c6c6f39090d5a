"""Encrypted values: those of a kube-apiserver 1.36.3, and its errors."""

import re

import pytest

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.storage.encryption.transformers import NO_ENCRYPTION, TransformError
from tests.storage.encryption.examples import (
    GROUPED,
    IDENTITY,
    LONG,
    OTHER,
    OTHER_SHORT,
    RESOURCES,
    RULES,
    SHORT,
    STORED,
    provider,
    transformers,
)

pytest.importorskip("nacl", reason="the extra [etcd] isn't installed")
SECRETS = GroupResource("", "secrets")
PLACE = b"/registry/secrets/default/s1"


@pytest.mark.parametrize("key", STORED)
def test_what_a_real_server_has_stored(key: str) -> None:
    transformer = transformers(RULES).of(RESOURCES[key])
    plain = transformer.read(STORED[key], key.encode())
    assert plain.value.startswith((b"k8s\0", b'{"apiVersion":"example.com/v1","kind":"Widget"'))
    assert key.rpartition("/")[2].encode() in plain.value
    assert not plain.is_stale
    written = transformer.write(plain.value, key.encode())
    prefix = re.match(rb"k8s:enc:\w+:v1:(a:b|\w+):", STORED[key])
    assert prefix is not None
    assert written.startswith(prefix[0])
    assert (len(written), written != STORED[key]) == (len(STORED[key]), True)
    assert transformer.read(written, key.encode()) == plain


@pytest.mark.parametrize(
    ("name", "providers", "message"),
    [
        (
            "secrets/default/s1",
            [provider("secretbox", box1=OTHER), IDENTITY],
            "output array was not large enough for encryption",
        ),
        ("configmaps/default/c1", [provider("aescbc", cbc1=OTHER), IDENTITY], "invalid padding on input"),
        (
            "serviceaccounts/default/sa1",
            [provider("aesgcm", gcm1=OTHER_SHORT), IDENTITY],
            "cipher: message authentication failed",
        ),
        ("deployments/default/d1", [IDENTITY], "no matching prefix found"),
        ("deployments/default/d1", [provider("aesgcm", a=SHORT)], "no matching prefix found"),
        (
            "example.com/widgets/default/w",
            [provider("aesgcm", other=SHORT)],
            "no matching key was found for the provided AES transformer",
        ),
        (
            "secrets/default/s1",
            [provider("secretbox", other=LONG)],
            "no matching key was found for the provided Secretbox transformer",
        ),
    ],
)
def test_a_wrong_key(name: str, providers: list[dict[str, object]], message: str) -> None:
    key = f"/registry/{name}"
    with pytest.raises(TransformError, match=f"^{re.escape(message)}$"):
        transformers({"*.*": providers}).of(RESOURCES[key]).read(STORED[key], key.encode())


def test_without_a_configuration() -> None:
    with pytest.raises(TransformError, match=r"^identity transformer tried to read encrypted data$"):
        NO_ENCRYPTION.of(SECRETS).read(STORED[PLACE.decode()], PLACE)


def test_two_wrong_providers_of_one_type() -> None:
    providers = [
        provider("secretbox", box1=OTHER),
        provider("secretbox", box1=OTHER, other=LONG),
        provider("secretbox", x=LONG),
    ]
    texts = "output array was not large enough for encryption, no matching key was found for the provided Secretbox transformer"
    with pytest.raises(TransformError, match=f"^{re.escape(f'[{texts}]')}$"):
        transformers({"secrets": providers}).of(SECRETS).read(STORED[PLACE.decode()], PLACE)


def test_a_value_is_bound_to_its_key_by_aesgcm_alone() -> None:
    for kind, is_bound in (("aesgcm", True), ("aescbc", False), ("secretbox", False)):
        transformer = transformers({"secrets": [provider(kind, a=LONG)]}).of(SECRETS)
        data = transformer.write(b"value", PLACE)
        if is_bound:
            with pytest.raises(TransformError, match="message authentication failed"):
                transformer.read(data, b"/registry/secrets/default/s2")
        else:
            assert transformer.read(data, b"/registry/secrets/default/s2").value == b"value"


@pytest.mark.parametrize(
    ("providers", "is_stale"),
    [
        ([provider("aescbc", old=LONG)], False),
        ([provider("aescbc", old=LONG, new=OTHER)], False),
        ([provider("aescbc", new=OTHER, old=LONG)], True),
        ([provider("aescbc", new=OTHER), provider("aescbc", old=LONG)], True),
        ([provider("aesgcm", new=SHORT), provider("aescbc", old=LONG)], True),
        ([IDENTITY, provider("aescbc", old=LONG)], True),
    ],
)
def test_another_key_than_the_first_is_stale(providers: list[dict[str, object]], is_stale: bool) -> None:
    data = transformers({"secrets": [provider("aescbc", old=LONG)]}).of(SECRETS).write(b"value", PLACE)
    plain = transformers({"secrets": providers}).of(SECRETS).read(data, PLACE)
    assert (plain.value, plain.is_stale) == (b"value", is_stale)


def test_a_plain_value_is_stale_if_values_are_to_be_encrypted() -> None:
    transformer = transformers({"secrets": [provider("aesgcm", a=SHORT), IDENTITY]}).of(SECRETS)
    assert transformer.read(b"value", PLACE).is_stale


@pytest.mark.parametrize(
    ("kind", "rest", "message"),
    [
        ("aesgcm", b"x" * 11, "the stored data was shorter than the required size"),
        ("aesgcm", b"x" * 27, "cipher: message authentication failed"),
        ("aescbc", b"x" * 15, "the stored data was shorter than the required size"),
        ("aescbc", b"x" * 16, "invalid PKCS7 data (empty or not padded)"),
        ("aescbc", b"x" * 40, "the stored data is not a multiple of the block size"),
        ("secretbox", b"x" * 39, "the stored data was shorter than the required size"),
        ("secretbox", b"x" * 40, "output array was not large enough for encryption"),
    ],
)
def test_a_damaged_value(kind: str, rest: bytes, message: str) -> None:
    transformer = transformers({"secrets": [provider(kind, a=LONG)]}).of(SECRETS)
    with pytest.raises(TransformError, match=f"^{re.escape(message)}$"):
        transformer.read(f"k8s:enc:{kind}:v1:a:".encode() + rest, PLACE)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 100_000])
@pytest.mark.parametrize("kind", ["aesgcm", "aescbc", "secretbox"])
def test_values_of_any_size(kind: str, size: int) -> None:
    transformer = transformers({"secrets": [provider(kind, a=LONG)]}).of(SECRETS)
    assert transformer.read(transformer.write(b"v" * size, PLACE), PLACE).value == b"v" * size


def test_a_name_with_a_colon() -> None:
    transformer = transformers({"secrets": [GROUPED]}).of(SECRETS)
    data = transformer.write(b"value", PLACE)
    assert data.startswith(b"k8s:enc:aescbc:v1:a:b:")
    assert transformer.read(data, PLACE).value == b"value"
