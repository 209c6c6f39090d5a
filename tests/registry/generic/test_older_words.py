"""What servers of older versions say of the same mistakes."""

import pytest

from fakeapiserver.registry.generic.older_words import reworded


@pytest.mark.parametrize(
    ("version", "newest", "older"),
    [
        ("v1.34", "must be no more than 63 bytes", "must be no more than 63 characters"),
        ("v1.35", "must be no more than 63 bytes", "must be no more than 63 bytes"),
        (
            "v1.33",
            "json: cannot unmarshal bool into Go struct field Volume.spec.volumes.VolumeSource.nfs of type v1.NFSVolumeSource",
            "json: cannot unmarshal bool into Go struct field Volume.spec.volumes.nfs of type v1.NFSVolumeSource",
        ),
        ("v1.36", "a valid label key must consist of", None),
    ],
)
def test_older_versions_have_their_own_words(version: str, newest: str, older: str | None) -> None:
    reword = reworded(version)
    assert (reword(newest) if reword is not None else None) == older
