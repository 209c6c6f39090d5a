"""Limits how many requests run at once: API priority and fairness, or the two plain limits.

Upstream: k8s.io/apiserver/pkg/server/filters/{priority-and-fairness,maxinflight}.go, pkg/util/flowcontrol.
"""
