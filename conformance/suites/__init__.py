"""Other people's own test suites, run against this server."""
