"""Where results leave the lake."""
