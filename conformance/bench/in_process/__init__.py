"""Programs that measure parts of this package in a process of their own, without sockets; each prints JSON.

The only modules of conformance that import the package: everything else talks to servers.
"""
