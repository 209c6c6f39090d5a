"""The handlers of requests, from a parsed request to the store and back.

Of auth and admission they use the interfaces only.
"""
