"""Loads kafka-python before pytest turns warnings into errors."""

import warnings

with warnings.catch_warnings():
    # kafka-python reads its definitions, at import, with functions that Python 3.11 and 3.12 call deprecated.
    warnings.filterwarnings("ignore", message="(read|open)_text is deprecated", category=DeprecationWarning)
    from .kafka_python_oracle import KafkaPythonOracle

    KafkaPythonOracle()
