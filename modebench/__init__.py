"""ModeBench: measure solution-mode collapse, and compare the cures."""

__version__ = "0.1.0"
