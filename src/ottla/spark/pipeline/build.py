"""The rows of a pipeline: the source, decoded, and the steps over it."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, StringType

from ottla.spark.dead_letters import DeadLetters, divert
from ottla.spark.decoding import decode
from ottla.spark.java_options import about_the_cluster
from ottla.spark.pipeline.section import PipelineError
from ottla.spark.pipeline.spec import SOURCE, Otherwise, PipelineSpec, SinkSpec, StepSpec

INPUT = "input"
"""What SQL calls the rows of the step before."""
DECODED = "decoded"
"""The metric that counts rows that could be decoded, where others go elsewhere."""
_ERROR = "_ottla_error"


class Builder:
    """Builds the rows of each sink.

    Each sink is a query of its own, and so reads the source by itself. Rows that are diverted are sent by the first
    query that comes across them, and dropped by the others.
    """

    def __init__(self, spec: PipelineSpec, spark: SparkSession) -> None:
        self._spec = spec
        self._spark = spark
        self._diverted_by: dict[str, str] = {}

    def rows(self, sink: SinkSpec) -> DataFrame:
        """What a sink gets, with its rows counted as `rows`."""
        needed = self._steps_for(sink)
        found = {SOURCE: self._source(sink)}
        found[SOURCE].createOrReplaceTempView(SOURCE)
        for step in needed:
            found[step.name] = self._step(step, found[step.input], sink)
            found[step.name].createOrReplaceTempView(step.name)
        return found[sink.input].observe(f"{sink.name} out", sql.count(sql.lit(1)).alias("rows"))

    def _steps_for(self, sink: SinkSpec) -> list[StepSpec]:
        """The steps up to the sink's. A query may join any of those before it, so none of them is left out."""
        names = [step.name for step in self._spec.steps]
        return [] if sink.input == SOURCE else list(self._spec.steps[: names.index(sink.input) + 1])

    def _source(self, sink: SinkSpec) -> DataFrame:
        rows = self._spark.readStream.format("ottla").options(**self._spec.source.options).load()
        spec = self._spec.source.decode
        if spec is None:
            return rows
        otherwise = self._otherwise(SOURCE, spec.otherwise, sink)
        decoded = decode(
            rows,
            spec.format,
            spec.schema,
            message=spec.message,
            confluent=spec.confluent,
            dead_letters=self._dead_letters() if otherwise == "divert" else None,
            error_column=_ERROR if otherwise == "drop" else None,
            options=spec.options,
        )
        if otherwise == "fail":
            return decoded
        if otherwise == "divert":
            return decoded.observe(DECODED, sql.count(sql.lit(1)).alias(DECODED))
        fits = sql.col(_ERROR).isNull()
        # Counted before they are dropped: else Spark moves the condition before the decoding, and decodes all over
        # again wherever the condition looks at what was decoded.
        return decoded.observe(DECODED, sql.count(sql.when(fits, 1)).alias(DECODED)).where(fits).drop(_ERROR)

    def _step(self, step: StepSpec, rows: DataFrame, sink: SinkSpec) -> DataFrame:
        if step.kind == "sql":
            rows.createOrReplaceTempView(INPUT)
            found = self._spark.sql(step.text)
        elif step.kind == "python":
            found = self.function(step)(rows)
            if not isinstance(found, DataFrame):
                raise PipelineError(f"step {step.name}: {step.text} gave {found!r}; it must give a DataFrame")
        else:
            found = self._expect(step, rows, self._otherwise(step.name, step.otherwise, sink))
        return found if step.watermark is None else found.withWatermark(*step.watermark)

    def _expect(self, step: StepSpec, rows: DataFrame, otherwise: Otherwise) -> DataFrame:
        # A condition that is neither true nor false, as of a null, is not met.
        met = sql.coalesce(sql.expr(step.text), sql.lit(False))
        words = f"the expectation {step.name} is not met: {step.text}"
        if otherwise == "fail":
            failure = sql.raise_error(sql.concat(sql.lit(f"{words}; the row is "), _row_as_json(rows)))
            return rows.where(sql.when(met, sql.lit(True)).otherwise(failure.cast("boolean")))
        counted = rows.observe(step.name, sql.count(sql.when(~met, 1)).alias(step.name))
        if otherwise == "drop":
            return counted.where(met)
        raw = "value" in rows.columns and isinstance(rows.schema["value"].dataType, BinaryType | StringType)
        value = None if raw else _row_as_json(rows)
        return divert(counted, sql.when(~met, sql.lit(words)), self._dead_letters(), value)

    def _otherwise(self, place: str, wanted: Otherwise, sink: SinkSpec) -> Otherwise:
        if wanted != "divert":
            return wanted
        first = self._diverted_by.setdefault(place, sink.name)
        return "divert" if first == sink.name else "drop"

    def _dead_letters(self) -> DeadLetters:
        assert self._spec.dead_letters is not None, "load() has seen to it"
        return DeadLetters(
            topic=self._spec.dead_letters,
            bootstrap_servers=self._spec.source.bootstrap_servers,
            options=about_the_cluster(self._spec.source.options),
        )

    def function(self, step: StepSpec) -> Callable[[DataFrame], Any]:
        """The function of a Python step; modules beside the file are found."""
        module_name, _, name = step.text.partition(":")
        folder = str(self._spec.folder)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            module = importlib.import_module(module_name)
            function = getattr(module, name)
        except (ImportError, AttributeError) as error:
            raise PipelineError(
                f"step {step.name}: {step.text} is not there: {error}; "
                f"modules are looked for in {folder} and among those that are installed"
            ) from None
        if not callable(function):
            raise PipelineError(f"step {step.name}: {step.text} is {function!r}; it must be a function")
        if str(getattr(module, "__file__", "")).startswith(folder):
            # Workers, perhaps on other machines, do not have the module: it travels with what uses it.
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        return function  # type: ignore[no-any-return]


def _row_as_json(rows: DataFrame) -> Column:
    return sql.to_json(sql.struct(*[sql.col(f"`{name}`") for name in rows.columns]))
