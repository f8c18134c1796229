"""Writing bits into a model, and reading those that need the network. Carriers know words, not stations."""
