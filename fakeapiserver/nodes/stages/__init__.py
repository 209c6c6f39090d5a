"""KWOK's Stage objects, which script what becomes of simulated nodes, their pods, and of any other resource.

`stage.py` says what a Stage means (pure), `player.py` plays it, `sources.py` finds stages: in files, or in the cluster.
What is here follows KWOK 0.8 (sigs.k8s.io/kwok). Nothing but `sources` is imported before there is a first Stage.
"""
