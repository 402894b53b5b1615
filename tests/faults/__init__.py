"""A proxy between a client and its brokers that delays, cuts, truncates and repeats, and says what it did."""

from .actions import (
    Action,
    Ending,
    Exchange,
    Passage,
    black_hole,
    cut_reply,
    cut_request,
    delay,
    drop_reply,
    duplicate_reply,
    edit_reply,
    every_cut,
    stray_reply,
)
from .proxy import FaultProxy
from .rules import Rule

__all__ = [
    "Action",
    "Ending",
    "Exchange",
    "FaultProxy",
    "Passage",
    "Rule",
    "black_hole",
    "cut_reply",
    "cut_request",
    "delay",
    "drop_reply",
    "duplicate_reply",
    "edit_reply",
    "every_cut",
    "stray_reply",
]
