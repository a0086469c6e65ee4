"""Advertising domain: clicks on ads, the campaigns that they are paid by, and their counts."""
