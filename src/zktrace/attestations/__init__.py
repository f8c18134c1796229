"""What the log says of a copy, as statements that other tools read: in-toto, in signed envelopes.

A statement names a model by the digest of its files, and carries the entry of the log that it follows from.
"""
