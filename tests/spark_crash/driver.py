"""`ottla` with named points in its pipelines: `python -m tests.spark_crash.driver pipeline run FILE`."""

from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from ottla.cli.main import app
from ottla.spark.pipeline import delta, run
from tests.spark_crash.points import PointedSource, Points, with_point_after_files, with_points_around_commit


def main() -> None:
    points = Points.of_this_run()
    start_spark = run.start_spark

    def start_with_points(*args: Any) -> SparkSession:
        spark = start_spark(*args)
        spark.dataSource.register(PointedSource)
        return spark

    # The package's own functions with points around them; what lies between two points is what users run.
    for place, name, replacement in (
        (run, "start_spark", start_with_points),
        (delta, "_file_writer", with_point_after_files(delta._file_writer, points)),
        (
            DeltaTable,
            "create_write_transaction",
            with_points_around_commit(DeltaTable.create_write_transaction, points),
        ),
    ):
        setattr(place, name, replacement)
    app()


if __name__ == "__main__":
    main()
