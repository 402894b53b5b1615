"""The broker: requests in, replies out."""
