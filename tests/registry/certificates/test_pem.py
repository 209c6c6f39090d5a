"""PEM texts whose blocks begin and don't end."""

import base64

import pytest

from fakeapiserver.registry.certificates import certificatesigningrequest, pem
from fakeapiserver.registry.core import key_pair

BEGIN = "-----BEGIN CERTIFICATE REQUEST-----\n"
END = "-----END CERTIFICATE REQUEST-----\n"
CONTENT = base64.b64encode(b"content").decode() + "\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (BEGIN + CONTENT + END, 1),
        ("text\n" + (BEGIN + CONTENT + END) * 3, 3),
        (BEGIN + "Name: a-----b\n\n" + CONTENT + END, 1),
        (BEGIN + END, 1),
        (BEGIN + CONTENT, 0),
        (BEGIN * 50_000, 0),
        (BEGIN * 50_000 + CONTENT + END, 1),
        (BEGIN * 50_000 + "-----END OTHER-----\n", 0),
    ],
)
def test_blocks_are_found_behind_beginnings_without_an_end(text: str, count: int) -> None:
    assert len(list(pem.blocks(text))) == count
    assert len(list(key_pair.pem_blocks(text.encode()))) == count
    assert len(list(certificatesigningrequest._PEM.finditer(text.encode()))) == count
