"""Keeping tables fit for months: fewer files, a short log, and every retained version readable."""
