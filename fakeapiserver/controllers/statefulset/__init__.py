"""Stateful sets (upstream: pkg/controller/statefulset).

`identity.py` and `claims.py` are pure: who a pod is, and whose its claims are. `pod_control.py` writes pods and claims, `update.py`
acts on one set, `controller.py` knows when there is something to do.
"""

from fakeapiserver.controllers.statefulset.controller import new

__all__ = ["new"]
