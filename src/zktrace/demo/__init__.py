"""The story that `zktrace demo` tells, through the same calls as the other commands. Draws nothing."""
