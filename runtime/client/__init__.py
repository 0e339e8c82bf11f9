"""The client's end of brokers: one I/O thread with a host of leaves, and publishes that are repeated until answered.

It knows plans and columns, not MPL: `smile/remote` puts names and values around it.
"""
