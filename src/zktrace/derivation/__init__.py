"""Where every secret and every drawn number comes from: labelled one-way streams, in one place.

    code key --Use--> subkey            known to the operator; a subkey tells nothing of the key or of another
    subkey --promise--> commitment      under a Merkle root that is on record before anything depends on it
    subkey + what others add --> rows, directions     public algorithms: a judge repeats them from an opening

No secret seeds a general-purpose generator (docs/spec/derivation.md).
"""
