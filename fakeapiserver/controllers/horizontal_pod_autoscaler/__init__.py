"""Scales workloads by what they use (upstream: pkg/controller/podautoscaler).

`metrics_client.py` asks the metrics APIs; `replica_calculator.py` finds how many pods a metric asks for, `scaling.py` how many of these
may come or go now: both are pure. `controller.py` does it, and writes the status.
"""

from fakeapiserver.controllers.horizontal_pod_autoscaler.controller import new

__all__ = ["new"]
