"""The page in a browser: what happened, why, and levers; its log-in, its files, and the same page as one file."""
