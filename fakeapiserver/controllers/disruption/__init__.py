"""Disruption budgets: how many pods may be disrupted (upstream: pkg/controller/disruption).

`scale.py` finds how many pods there should be; `controller.py` writes the status of budgets, and resets the condition
DisruptionTarget of pods that were not disrupted after all.
"""

from fakeapiserver.controllers.disruption.controller import new

__all__ = ["new"]
