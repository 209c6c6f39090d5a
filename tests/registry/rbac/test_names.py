"""Names of roles and bindings."""

import pytest

from fakeapiserver.registry.rbac import RESOURCES


@pytest.mark.parametrize("prefix", [False, True], ids=["name", "generateName"])
def test_a_name_to_be_generated_is_judged_like_a_whole_one(prefix: bool) -> None:
    for strategy in RESOURCES.values():
        assert strategy.validate_name("..", prefix) == ["may not be '..'"]
        assert strategy.validate_name("system:a/b", prefix) == ["may not contain '/'"]
        assert strategy.validate_name("system:a b", prefix) == []
