"""The webhooks, a module a kind."""
