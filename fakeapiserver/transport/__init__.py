"""TLS and outgoing HTTP, shared by all callers of other servers."""
