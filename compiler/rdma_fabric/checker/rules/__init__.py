"""One module per rule: RULE, and a docstring that is the rule's documentation."""
