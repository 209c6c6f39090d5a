"""How many requests may run at once: priority and fairness, or the two plain limits.

Upstream: k8s.io/apiserver/pkg/server/filters/{priority-and-fairness,maxinflight}.go, pkg/util/flowcontrol.
"""
