package secateur;

import org.apache.commons.io.FileUtils;
import org.apache.spark.sql.connector.metric.CustomMetric;

/** A number of bytes of a scan. Spark's UI makes one by its class's name, to print what the scan reports. */
public final class SizeMetric implements CustomMetric {
    private final String name, description;

    public SizeMetric() { this("", ""); }

    public SizeMetric(String name, String description) {
        this.name = name;
        this.description = description;
    }

    public String name() { return name; }

    public String description() { return description; }

    public String aggregateTaskMetrics(long[] values) {
        long sum = 0;
        for (int i = 0; i < values.length; i++) sum += values[i];
        return FileUtils.byteCountToDisplaySize(sum);
    }
}
