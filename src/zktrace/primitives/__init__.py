"""Bytes and bits: canonical encoding, domain-separated SHAKE streams, packed GF(2), whole files."""
