"""Makes the jar behind `format("kafka")`: `python -m tests.spark.kafka_jar` after its Java source was edited."""

import io
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pyspark

from ottla.spark.kafka_format import SOURCE, kafka_jar

SPARK_JARS = Path(pyspark.__file__).parent / "jars"


def compiled() -> dict[str, bytes]:
    """The class files that javac makes of the source, by their names in the jar."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["javac", "--release", "17", "-g:none", "-proc:none", "-nowarn", "-cp", f"{SPARK_JARS}/*"]
        subprocess.run([*command, "-d", folder, str(SOURCE)], check=True, capture_output=True)
        files = sorted(Path(folder).rglob("*.class"))
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def packed(classes: dict[str, bytes]) -> bytes:
    """A jar of these classes, which is the same for the same classes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, data in classes.items():
            jar.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


if __name__ == "__main__":
    Path(kafka_jar()).write_bytes(packed(compiled()))
