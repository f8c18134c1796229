"""What a guard costs a federation, whom leaks of its broadcasts name, and what other designs would do."""
