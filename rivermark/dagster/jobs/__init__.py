"""The runs that people and clocks start, and what happens inside them."""
