"""What the real kube-controller-manager made of the scripts, and what the controllers here make of them."""

import pytest

from conformance.controllers import FLAGS, replay_fresh, scripts
from fakeapiserver.controller_manager.descriptor import AVAILABLE, canonical

# The controllers that have scripts, by the folder's name, which is an alias of theirs.
SCRIPTED = sorted(
    {path.parent.name for path in scripts(()) if path.parent.name in FLAGS or canonical(path.parent.name) in AVAILABLE}
)


@pytest.mark.timeout(240)  # caches of what isn't served any more are tried again by the real clock
@pytest.mark.parametrize("controller", SCRIPTED)
def test_every_state_is_as_the_real_manager_left_it(controller: str) -> None:
    equal, total, misses = replay_fresh([f"{controller}/"])
    assert not misses, "\n".join(misses)
    assert equal == total > 0
