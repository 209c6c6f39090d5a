"""Deployments (upstream: pkg/controller/deployment).

`counts.py`, `revisions.py` and `conditions.py` are pure: sizes, the choice of the new replica set, the status.
`rollout.py` acts on one
deployment, `controller.py` decides when.
"""

from fakeapiserver.controllers.deployment.controller import new

__all__ = ["new"]
