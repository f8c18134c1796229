"""No test here is about time: a busy machine must not turn a slow example into a failure."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
