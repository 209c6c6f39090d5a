"""The handlers of the verbs: one file per verb, from a parsed request to the store and back."""
