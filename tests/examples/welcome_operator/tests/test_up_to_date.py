"""config/ is what the code says."""

from pathlib import Path

from fakeapiserver.scaffold import manifests


def test_the_manifests_are_up_to_date() -> None:
    changed = manifests.differences(Path(__file__).parent.parent)
    assert not changed, f"run `make manifests`: {', '.join(map(str, changed))} differ"
