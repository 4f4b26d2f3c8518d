"""What leaves the site for a bug report or a fixture: device output and runs, without secrets."""
