"""Who may do what: rules are matched in matching.py, decided by in authorizer.py, asked for by handlers in check.py."""
