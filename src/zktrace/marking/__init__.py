"""Writing words into a model: in closed form by numpy, or by training. One writer for each carrier."""
