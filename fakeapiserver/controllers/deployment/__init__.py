"""Deployments (upstream: pkg/controller/deployment).

`counts.py`, `revisions.py` and `conditions.py` are pure: sizes, which replica set is the new one, what the status tells. `rollout.py` acts
on one deployment, `controller.py` knows when there is something to do.
"""

from fakeapiserver.controllers.deployment.controller import new

__all__ = ["new"]
