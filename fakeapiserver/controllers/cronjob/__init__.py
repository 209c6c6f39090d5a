"""Jobs by a timetable (upstream: pkg/controller/cronjob).

`schedule.py` is pure: when a job is due, and how long until the next. `controller.py` acts on it.
"""

from fakeapiserver.controllers.cronjob.controller import new

__all__ = ["new"]
