"""Where entries are kept: one contract, several places. Only this folder knows a database."""
