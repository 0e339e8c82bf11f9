"""Programs that a person would write by hand, for benchmarks that compare generated ones with them."""
