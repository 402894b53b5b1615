"""One partition as this broker holds it: what may be appended, what may be read, and who waits for either."""
