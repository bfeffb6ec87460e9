"""The whole product on one machine, for development and for a first look. Loopback only; never for production."""
