"""The thin HTTP API: request in, store transaction out; it knows no Temporal."""
