"""Jobs: pods that run to completion (upstream: pkg/controller/job).

Pure: `indexes.py` (completed and failed indexes), `policies.py` (pod failure and success policies), `backoff.py`
(delays of new pods),
`pods.py` (functions on a job's pods). `sync.py` is one sync of one job; `controller.py` decides when to sync.
"""

from fakeapiserver.controllers.job.controller import new

__all__ = ["new"]
