"""Records the facts about a real server that the package's tables are made from, and recorded exchanges."""
