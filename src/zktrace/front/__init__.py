"""The front door: what `import zktrace` offers, and what the command line calls."""
