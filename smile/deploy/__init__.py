"""What goes to brokers and where it runs: `smile.toml`, placement, the deployment record, and its check on arrival."""
