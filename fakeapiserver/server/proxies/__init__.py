"""Proxies to pods, services, nodes and kubelets, and what all proxies of the server share."""
