package kafka;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriteBuilder;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.types.StructType;

/**
 * What Spark finds under the name "kafka" where no other class has it: Ottla's source and sink, written in Python, with
 * what Spark gives to sinks in Java only: the save mode errorifexists, which is its default, and the output mode update.
 */
public final class DefaultSource extends PythonDataSourceV2 implements CreatableRelationProvider {
    private static final String FORMAT = "ottla";

    @Override
    public void setShortName(String name) {
        super.setShortName(FORMAT);
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new Topics(this, schema);
    }

    @Override
    public BaseRelation createRelation(
            SQLContext context, SaveMode mode, scala.collection.immutable.Map<String, String> options, Dataset<Row> rows) {
        if (mode != SaveMode.Append && mode != SaveMode.ErrorIfExists) {
            throw new IllegalArgumentException(
                "save mode " + mode + ": records are only ever added to a topic; use mode append or errorifexists");
        }
        rows.write().format(FORMAT).options(options).mode(SaveMode.Append).save();
        return new Written(context, rows.schema());
    }

    private static final class Topics extends PythonTable {
        private final PythonDataSourceV2 source;

        Topics(PythonDataSourceV2 source, StructType schema) {
            super(source, FORMAT, schema);
            this.source = source;
        }

        /** Those of a sink in Python, but for batches: they take the way of `createRelation`, which has all modes. */
        @Override
        public Set<TableCapability> capabilities() {
            Set<TableCapability> found = EnumSet.copyOf(super.capabilities());
            found.remove(TableCapability.BATCH_WRITE);
            return found;
        }

        @Override
        public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
            return new Writing(source, info);
        }
    }

    /** A row that has changed is one more record, so the output mode update is no other than append. */
    private static final class Writing extends PythonWriteBuilder implements SupportsStreamingUpdateAsAppend {
        Writing(PythonDataSourceV2 source, LogicalWriteInfo info) {
            super(source, FORMAT, info);
        }
    }

    private static final class Written extends BaseRelation {
        private final SQLContext context;
        private final StructType schema;

        Written(SQLContext context, StructType schema) {
            this.context = context;
            this.schema = schema;
        }

        @Override
        public SQLContext sqlContext() {
            return context;
        }

        @Override
        public StructType schema() {
            return schema;
        }
    }
}
