"""Deletes objects whose owners are gone (upstream: pkg/controller/garbagecollector).

Informers of every resource build a graph of owners and dependents (`graph.py`, pure), which proposes deletions and orphanings;
`collector.py` asks the server and acts.
"""

from fakeapiserver.controllers.garbage_collector.collector import new

__all__ = ["new"]
