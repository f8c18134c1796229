"""What may be claimed: bounds as pure functions of numbers and arrays, rigorous where a claim rests on them.

A certified number is an interval, and only its safe end is quoted: thresholds and failure probabilities are
rounded up, success probabilities and scores down. `docs/bounds.md` lists every calculator with its formula.
"""
