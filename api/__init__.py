"""The HTTP API: a request in, one store transaction out. It knows no Temporal."""
