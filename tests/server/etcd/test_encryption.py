"""Encryption at rest: values that a real kube-apiserver has written, and values that can't be decrypted."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.server.etcd import encryption_config
from fakeapiserver.storage.encryption.providers import (
    AESCBC,
    AESGCM,
    IDENTITY,
    PLAIN,
    Cipher,
    DecryptionFailed,
    Encryption,
    Secretbox,
    key_of,
)


def secret(provider: str) -> bytes:
    return (provider * 32)[:32].encode()


CIPHERS: dict[str, Cipher] = {
    "aescbc": AESCBC(secret("aescbc")),
    "aesgcm": AESGCM(secret("aesgcm")),
    "secretbox": Secretbox(secret("secretbox")),
}
EVERY = Encryption([*(key_of(name, "k1", cipher) for name, cipher in CIPHERS.items()), IDENTITY])
# Secrets of kube-apiserver 1.36.3, with these keys, and their keys in etcd.
RECORDED = {
    "/registry/secrets/default/real-cbc": (
        "6b38733a656e633a6165736362633a76313a6b313ae6fa983f61f790ebd7585c1fc027d0cc503ea2f8e063fc641b632690d6"
        "012094a12374fc94ff7f126818ab2317213791e12e71bc65676f2b27ef61cbda5bea804ce4c8b5e04fcdc78a76636ecfae4b"
        "e67db130ecfe98c5e495280dfd2faa3af0eebea88e0857dd07bf20af674afc0c99968eabe6a3774fdfc9123ad62b0bec4062"
        "670955d59ecab8e9d8b399c427a5271c11e5a4160a75b55d1efca11531731b977c976578c32c2181634a6587287e0563618a"
        "76d57a64103fe18cc1d627f35b55a3b48edf8200d000fdc75253b495f5640e23c971510a9f59d3e5718caa84db536287addc"
        "ac881008c688ed74cc3cc7"
    ),
    "/registry/secrets/default/real-gcm": (
        "6b38733a656e633a61657367636d3a76313a6b313a0bf1efe6ff2c4bea8595b17ec4bc8a5196fd5069b09dced901938403a4"
        "2f8883d46235822e13179ead0dd68062fbde17835e8191659c2947cb7a5f0fdeae81dc2543d6b193df0b20f773cb5d818bd9"
        "1bcdffcca68f73794385f0dbb8da7e58c5e36a089828d94b7965354ab59de3e19ad8b7142c4e03ed07976eed79dab15bf294"
        "31e560b92743564adb27a9720ef50b76da69f7c45360b9c461c823dbd0acf824b07cec4a54cdd33c4ca88e89e8abe647af9d"
        "d90edc820e336db69284c4adb9be49a026d1e2b6c71344354b3f4797ed70a98dcbb7d4054afee45c06e8af11a00af8576ab0"
        "0dc54cd44660f39aff784ee5fa8c60"
    ),
    "/registry/secrets/default/real-box": (
        "6b38733a656e633a736563726574626f783a76313a6b313a0d523e9464e098270a8c72649fe77a94599284fc3015c3c8f7cd"
        "557da6f5eeb7647a986e31e7d609a2bef449858e34ace9c1437b9f99a95977f41f66a572bb55e0718d1abec018ec738b6fb3"
        "92e8acabe311c4dfc5e3fa17fb30d262f2f468a5df9e1fb1c80b8bb82dc5c7952ab1aadc0a58a1bbaf8ecd6cb88c2f55f31f"
        "dac1ce22f685adf29aaef93231a528ab5405e164099b49dbd4e9304f1c43b7ecb5a71def9973013535a127110651db334d60"
        "d4c1c10630d3bc0cffc1d09d7a54085f0a5fc899f76e573d23cec04b63f6262dc1bf3f0887b9dceef49e44d1514abdb88c72"
        "3db4d1da5c07e2dbaea6b7c848577a297f43ead34c85b5f4d601b63ed5da"
    ),
}


@pytest.mark.parametrize("key", RECORDED)
def test_values_of_a_real_server_are_decrypted(key: str) -> None:
    plain = EVERY.decrypt(bytes.fromhex(RECORDED[key]), key.encode())
    assert plain.startswith(b"k8s\0\n\x0c\n\x02v1\x12\x06Secret")
    assert key.rpartition("/")[2].encode() in plain


@given(st.binary(max_size=300), st.sampled_from(sorted(CIPHERS)))
def test_what_is_encrypted_is_decrypted(data: bytes, provider: str) -> None:
    encryption = Encryption([key_of(provider, "k1", CIPHERS[provider])])
    encrypted = encryption.encrypt(data, b"key")
    assert encrypted.startswith(f"k8s:enc:{provider}:v1:k1:".encode())
    assert encryption.decrypt(encrypted, b"key") == data


@pytest.mark.parametrize("provider", ["aesgcm", "secretbox"])
@pytest.mark.parametrize("at", [24, 40, 60, -1])
def test_a_changed_value_is_noticed(provider: str, at: int) -> None:
    encryption = Encryption([key_of(provider, "k1", CIPHERS[provider])])
    encrypted = bytearray(encryption.encrypt(b"x" * 50, b"key"))
    encrypted[at] ^= 1
    with pytest.raises(DecryptionFailed, match="can't be decrypted: the key is another one, or the value was changed"):
        encryption.decrypt(bytes(encrypted), b"key")


def test_a_value_that_was_moved_is_noticed() -> None:
    encrypted = EVERY.decrypt(EVERY.encrypt(b"x", b"key"), b"other")  # aescbc binds no value to its key
    assert encrypted == b"x"
    bound = Encryption([key_of("aesgcm", "k1", CIPHERS["aesgcm"])])
    with pytest.raises(DecryptionFailed, match="changed or moved"):
        bound.decrypt(bound.encrypt(b"x", b"key"), b"other")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"k8s:enc:aescbc:v1:k2:" + b"x" * 32, "is encrypted with a key that isn't there: k2 of aescbc"),
        (b"k8s:enc:kms:v2:remote:x", "is encrypted with a key that isn't there: remote of kms"),
        (b"k8s:enc:aescbc:v1:k1:short", "can't be decrypted: it is not made of whole blocks"),
        (b"k8s:enc:secretbox:v1:k1:short", "can't be decrypted: it is too short"),
        (b"k8s:enc:aesgcm:v1:k1:short", "can't be decrypted: the key is another one"),
        (b"k8s:enc:", "is encrypted with a key that isn't there"),
    ],
)
def test_values_that_cannot_be_decrypted(data: bytes, reason: str) -> None:
    with pytest.raises(DecryptionFailed, match=reason):
        EVERY.decrypt(data, b"key")


def test_plain_values_need_the_identity() -> None:
    assert EVERY.decrypt(b"{}", b"key") == PLAIN.decrypt(b"{}", b"key") == PLAIN.encrypt(b"{}", b"key") == b"{}"
    with pytest.raises(DecryptionFailed, match="is not encrypted"):
        Encryption([key_of("aescbc", "k1", CIPHERS["aescbc"])]).decrypt(b"{}", b"key")


HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"
KEY = "{keys: [{name: k1, secret: c2VjcmV0Ym94c2VjcmV0Ym94c2VjcmV0Ym94c2VjcmU=}]}"


def test_the_first_entry_that_names_a_resource_counts(tmp_path: Path) -> None:
    path = tmp_path / "encryption.yaml"
    path.write_text(
        f"{HEAD}resources:\n- resources: [secrets, widgets.example.com]\n  providers: [{{secretbox: {KEY}}}, {{identity: {{}}}}]\n"
        f"- resources: ['*.apps']\n  providers: [{{identity: {{}}}}, {{aescbc: {KEY}}}]\n"
        f"- resources: ['*.']\n  providers: [{{aesgcm: {KEY}}}]\n"
    )
    configuration = encryption_config.read(path)
    prefixes = {
        str(resource): configuration.of(resource).keys[0].prefix.decode()
        for resource in (
            GroupResource("", "secrets"),
            GroupResource("example.com", "widgets"),
            GroupResource("apps", "deployments"),
            GroupResource("", "configmaps"),
            GroupResource("batch", "jobs"),
        )
    }
    assert prefixes == {
        "secrets": "k8s:enc:secretbox:v1:k1:",
        "widgets.example.com": "k8s:enc:secretbox:v1:k1:",
        "deployments.apps": "",
        "configmaps": "k8s:enc:aesgcm:v1:k1:",
        "jobs.batch": "",
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[", "is invalid"),
        ("kind: Config\napiVersion: v1\nresources: []", "is not an EncryptionConfiguration"),
        (HEAD + "resources: [{resources: [secrets], providers: []}]", "secrets has no provider"),
        (HEAD + "resources: [{resources: [secrets], providers: [{kms: {name: a}}]}]", "the provider kms isn't there"),
        (HEAD + "resources: [{resources: [secrets], providers: [{}]}]", "a provider has one of the names identity, "),
        (HEAD + "resources: [{resources: [secrets], providers: [{aescbc: {keys: []}}]}]", "aescbc has no keys"),
        (
            HEAD + "resources: [{resources: [secrets], providers: [{aescbc: {keys: [{name: a, secret: '!'}]}}]}]",
            "the secret of the key a of aescbc is not base64",
        ),
        (
            HEAD + "resources: [{resources: [secrets], providers: [{secretbox: {keys: [{name: a, secret: YWJj}]}}]}]",
            "the secret of the key a of secretbox has 3 bytes instead of 32",
        ),
        (
            HEAD + "resources: [{resources: [secrets], providers: [{aesgcm: {keys: [{name: 'a:b', secret: YWJj}]}}]}]",
            "needs a name without colons",
        ),
    ],
)
def test_invalid_files(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "encryption.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint):
        encryption_config.read(path)
