"""The service: an HTTP API and a web console over the same calls. It computes nothing itself.

The process that listens holds the registry and no code key: whatever needs the key is a job that a worker
process takes up.
"""
