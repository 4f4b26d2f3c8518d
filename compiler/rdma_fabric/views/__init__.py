"""Results as text, JSON and markdown; nothing is decided here."""
