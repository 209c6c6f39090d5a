"""The pictures of the documentation can be taken, and are there."""

import pytest

from tests.ui.pictures import FOLDER, VIEWS, take


@pytest.mark.slow
def test_each_view_has_a_picture(tmp_path, browser):
    take(tmp_path, browser)
    assert {path.stem for path in tmp_path.iterdir()} == set(VIEWS) == {path.stem for path in FOLDER.glob("*.png")}
