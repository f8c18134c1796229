"""Small but real networks of many architectures, trained here: what a study of models protects."""
