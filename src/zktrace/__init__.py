"""ZK-Trace: whose copy of the federated model leaked, with a bound that a judge can re-check."""

__version__ = "0.1.0"
