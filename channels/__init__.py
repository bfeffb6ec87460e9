"""One adapter per provider: a prepared message in, an `Outcome` out. They know no database and no Temporal."""
