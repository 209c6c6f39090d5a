"""controller-runtime's parts: operators against any Kubernetes server.

manager = Manager(kubeconfig.load())
controller_managed_by(manager).for_(gvk("example.com/v1", "Widget")).complete(WidgetReconciler(manager.client))
asyncio.run(manager.run_until_signal())
"""

from fakeapiserver.controller_runtime.builder import Builder, controller_managed_by
from fakeapiserver.controller_runtime.cache import ByObject, CacheOptions
from fakeapiserver.controller_runtime.client import Client
from fakeapiserver.controller_runtime.controller import Controller, ControllerOptions
from fakeapiserver.controller_runtime.manager import Manager, ManagerOptions, Runnable
from fakeapiserver.controller_runtime.reconcile import Reconciler, ReconcilerFunc, Request, Result, TerminalError
from fakeapiserver.controller_runtime.scheme import gvk, kind

__all__ = [
    "Builder",
    "ByObject",
    "CacheOptions",
    "Client",
    "Controller",
    "ControllerOptions",
    "Manager",
    "ManagerOptions",
    "Reconciler",
    "ReconcilerFunc",
    "Request",
    "Result",
    "Runnable",
    "TerminalError",
    "controller_managed_by",
    "gvk",
    "kind",
]
