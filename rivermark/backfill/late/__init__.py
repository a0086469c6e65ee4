"""Late rows taken into the closed days that they belong to, and everything below computed again."""
