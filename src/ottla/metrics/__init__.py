"""What a broker does, in numbers and in words: counters that cost next to nothing, and how others get to see them.

The hot path adds to plain integers. Whoever scrapes pays for the rest: names, labels, sums and text.
"""
