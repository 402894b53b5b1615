"""Pipelines from a file: topics in, SQL or Python functions over them, and tables or topics out."""
