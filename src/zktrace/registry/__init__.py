"""What was promised beforehand: records in an append-only log, the rules they obey, where they are kept."""
