"""Benchmarks: command-line scripts that print small tables. Not part of what is installed."""
