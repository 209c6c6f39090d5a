"""How many pods may be disrupted (upstream: pkg/controller/disruption).

`scale.py` finds how many pods there should be; `controller.py` writes the status of budgets, and takes back from pods the word that
they are to be disrupted when nothing comes of it.
"""

from fakeapiserver.controllers.disruption.controller import new

__all__ = ["new"]
