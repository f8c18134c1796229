"""Real values from a model's arrays, which tracer and judge read alike: numpy only, and no key to any row."""
