"""Where bits live in a model: read with numpy, written with torch. Carriers know words, not stations."""
