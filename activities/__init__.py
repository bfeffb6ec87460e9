"""What a workflow may ask of the world: send one delivery, apply one decision."""
