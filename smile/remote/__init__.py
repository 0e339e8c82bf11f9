"""The public API over a connection to brokers: what `smile.connect` gives."""
