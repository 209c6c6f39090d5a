"""Warnings about pods that use a volume with different SELinux labels (upstream: pkg/controller/volume/selinuxwarning).

`volume_cache.py` (pure) keeps the uses of volumes and finds the conflicts; `controller.py` feeds it and records
events. It runs only if
`--controllers` names it, because only the user knows whether nodes have SELinux.
"""

from fakeapiserver.controllers.selinux_warning.controller import new

__all__ = ["new"]
