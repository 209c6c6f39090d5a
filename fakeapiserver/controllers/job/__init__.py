"""Pods that run to their end (upstream: pkg/controller/job).

Pure: `indexes.py` (which indexes of an indexed job are done), `policies.py` (what a failure or a success means), `backoff.py` (when the
next pod may come), `pods.py` (what a pod tells of its job). `sync.py` is one look at one job; `controller.py` decides when to look.
"""

from fakeapiserver.controllers.job.controller import new

__all__ = ["new"]
