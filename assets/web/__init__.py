"""Web domain: page views of a shop's visitors, and their sessions."""
