"""Rules that upstream declares in its types' comments: tables of them, and how their errors differ from handwritten ones."""
