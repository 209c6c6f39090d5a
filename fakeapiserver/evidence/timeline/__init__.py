"""A recording of requests, writes and reconciles, for pages and tools that draw it: a list of records, and the states of objects."""
