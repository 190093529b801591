"""The `clean` reading: did the response give one right solution, and which one?

Formatting is forgiven, lists of guesses are refused, and a solution counts once however it is spelled.
References are those of the `published` reading, compiled by the same functions; a module here has a
``judge`` of its own for each domain. The rules are written down in docs/readings.md.
"""
