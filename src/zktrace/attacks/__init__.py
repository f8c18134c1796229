"""What a leaker may do to a copy before it is found. An attack knows what its arguments hand to it."""
