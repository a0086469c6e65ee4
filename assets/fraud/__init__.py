"""Fraud domain: logins and card payments, and the patterns in them that ask for a second look."""
