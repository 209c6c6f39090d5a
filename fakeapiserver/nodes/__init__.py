"""Simulated nodes: Node objects with leases, and a kubelet that lets their pods live, by the server's clock.

What containers do is scripted (behaviour.py); without a script they start at once, are ready, and run until they are stopped; those of
a Job end at once with exit code 0.
"""
