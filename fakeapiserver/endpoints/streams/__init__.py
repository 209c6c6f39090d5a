"""Connections that stay open: WebSockets, exec, attach, logs, port-forward and proxies."""
