"""TLS and outgoing HTTP, shared by whoever calls others."""
