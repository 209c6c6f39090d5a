"""One file per verb: from a parsed request to the store and back. ASGI types only; of auth and admission, interfaces only."""
