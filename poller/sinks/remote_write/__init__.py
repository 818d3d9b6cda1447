"""The `remote_write` sink: readings to Prometheus, VictoriaMetrics, Mimir and their kin.

`series_prefixes` has the bytes of series, `encoder_v1` and `encoder_v2` make requests of them,
`refused_series` finds what a store does not take, `counter_memory` sees wraps and resets.
"""

from poller.sinks.remote_write.remote_write_sink import RemoteWriteSink

__all__ = ["RemoteWriteSink"]
