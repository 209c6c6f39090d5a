"""One file per verb, from a parsed request to the store and back. Of auth and admission, interfaces only."""
