"""Random credentials of requests, most of them attacks."""
