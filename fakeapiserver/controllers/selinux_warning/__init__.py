"""Warns of pods that use one volume with different SELinux labels (upstream: pkg/controller/volume/selinuxwarning).

`volume_cache.py` (pure) knows who uses which volume how, and finds the conflicts; `controller.py` feeds it and tells events. Runs where
somebody names it, as nobody else knows whether nodes have SELinux.
"""

from fakeapiserver.controllers.selinux_warning.controller import new

__all__ = ["new"]
