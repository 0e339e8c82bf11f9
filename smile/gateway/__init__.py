"""The HTTP gateway: views as JSON, Server-Sent Events and WebSocket; streams by POST. A client like any other."""
