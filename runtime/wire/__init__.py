"""Messages and control records as bytes, and back: bounded, versioned, and without sockets.

Brokers and clients call `messages`, `control` and `frames`; `batches` and `columns` hold the layout of rows.
"""
