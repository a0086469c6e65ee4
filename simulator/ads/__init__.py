"""Clicks on made-up ads, and the service that knows their campaigns."""
