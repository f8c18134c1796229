"""One marked copy a station: made, read back, put on record."""
