"""Pods lose devices that are tainted (upstream: pkg/controller/devicetainteviction).

`rules.py` finds the devices that DeviceTaintRules taint, and writes the rules' status; `controller.py` deletes the pods.
"""

from fakeapiserver.controllers.device_taint_eviction.controller import new

__all__ = ["new"]
