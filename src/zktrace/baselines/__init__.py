"""Published watermarks for federations, one a file, behind one face: what ZK-Trace is compared with."""
