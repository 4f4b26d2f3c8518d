"""Reads a fabric that runs already and writes the intent and inventory that describe it."""
