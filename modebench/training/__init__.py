"""Training a policy with the methods that the benchmark compares."""
