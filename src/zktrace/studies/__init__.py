"""Experiments: a trial is a configuration and a seed, its outcome a saved row; tables are made of rows."""
