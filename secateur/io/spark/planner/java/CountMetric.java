package secateur;

import org.apache.spark.sql.connector.metric.CustomMetric;

/** A number of a scan. Spark's UI makes one by its class's name, to print what the scan reports. */
public final class CountMetric implements CustomMetric {
    private final String name, description;

    public CountMetric() { this("", ""); }

    public CountMetric(String name, String description) {
        this.name = name;
        this.description = description;
    }

    public String name() { return name; }

    public String description() { return description; }

    public String aggregateTaskMetrics(long[] values) {
        long sum = 0;
        for (int i = 0; i < values.length; i++) sum += values[i];
        return String.format("%,d", new Object[] {Long.valueOf(sum)});
    }
}
