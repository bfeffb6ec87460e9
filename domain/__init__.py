"""The words and rules of notification delivery. Standard library only: no clock, no database, no network."""
