"""Records of a source become admitted, late or quarantined rows. Nothing is lost in between."""
