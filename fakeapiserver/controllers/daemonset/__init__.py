"""Daemon sets (upstream: pkg/controller/daemon).

`placement.py` and `rollout.py` are pure: on which nodes pods belong, and which come and go next. `history.py` keeps the revisions,
`controller.py` knows when there is something to do, and does it.
"""

from fakeapiserver.controllers.daemonset.controller import new

__all__ = ["new"]
