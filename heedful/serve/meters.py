"""The server's metrics, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Meters:
    """The metrics of one server, with a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # its memory, time and open files
        of, own = self.registry, ["model"]
        self.waiting = Gauge("heed_queue_length", "Requests that wait for a model", own, registry=of)
        self.batches = Histogram("heed_batch_size", "Inputs answered together", own, buckets=SIZES, registry=of)
        self.tokens = Counter("heed_tokens", "Tokens that were generated", own, registry=of)
        self.inputs = Counter("heed_inputs", "Inputs that were answered", [*own, "verb"], registry=of)
        self.answered = Histogram(
            "heed_answer_seconds", "Until a model's answer", [*own, "verb"], buckets=SECONDS, registry=of
        )
        self.requests = Counter("heed_requests", "Requests by their status", ["status"], registry=of)
        self.latency = Histogram("heed_request_seconds", "Until a whole answer", buckets=SECONDS, registry=of)

    def page(self) -> bytes:
        return generate_latest(self.registry)
