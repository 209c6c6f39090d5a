"""Deletes what has lost its owners (upstream: pkg/controller/garbagecollector).

Informers of every resource build a graph of who owns whom (`graph.py`, pure), which says what may have to go or to be orphaned;
`collector.py` asks the server and acts.
"""

from fakeapiserver.controllers.garbage_collector.collector import new

__all__ = ["new"]
