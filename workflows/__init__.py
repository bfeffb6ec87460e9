"""The process of one event, deterministic: no clock, no randomness, no database, no network but through Temporal."""
