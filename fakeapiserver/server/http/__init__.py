"""HTTP/1.1 over TLS as Go's server speaks it: connections, request heads, exchanges and the listener."""
