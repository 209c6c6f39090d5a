"""How built-in and custom resources differ on their way from the path to the answer: chosen once, when a scope is made."""
