"""The metrics APIs, with values that a test sets: metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io.

In a real cluster metrics-server and adapters serve them behind the aggregator; here this server does so itself, as long as they are
switched on. `values.py` holds what was set (pure), `groups.py` the three groups, `apis.py` switches them.
"""
