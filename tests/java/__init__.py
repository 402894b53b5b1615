"""Programs in Java beside the tests: their jars by Maven, and a conversation in lines of JSON."""

from .program import JavaError, JavaProgram, is_available, jars, java_command, skip_without_maven

__all__ = ["JavaError", "JavaProgram", "is_available", "jars", "java_command", "skip_without_maven"]
