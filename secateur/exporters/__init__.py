"""Ready-made reporters for ``add_reporter``: they send what plans did to OpenTelemetry or Prometheus."""

from secateur.exporters.opentelemetry import opentelemetry_reporter
from secateur.exporters.prometheus import prometheus_reporter

__all__ = ["opentelemetry_reporter", "prometheus_reporter"]
