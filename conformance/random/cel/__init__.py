"""Tables that random CEL expressions are made from."""
