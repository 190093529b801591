"""Tasks written by a policy: how it is asked for them, and how its answers are read."""
