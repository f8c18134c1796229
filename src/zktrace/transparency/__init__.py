"""Signed heads that other people's tools read: C2SP notes, checkpoints, proofs, cosignatures and witnesses.

Needs nothing but `cryptography`: whoever runs a witness installs no more. What a log holds is not known here.
"""
