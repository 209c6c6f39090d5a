"""Parts of Go's standard library that decide words and limits of answers: texts in quotes, numbers, addresses and URLs."""
