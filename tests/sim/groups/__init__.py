"""Random histories of groups: the shipped coordinator under a simulated clock, with members that join, leave, die and
sleep, and a network that delays, drops and repeats what they send.
"""
