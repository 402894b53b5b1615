"""Decisions without IO: what a group's coordinator answers, and what it wants written down before it does."""
