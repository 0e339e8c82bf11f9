"""The operators: one file each. `operator` has the interface."""
