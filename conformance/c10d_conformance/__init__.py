"""A test suite for c10d backends: any backend of torch.distributed, on any device."""

__version__ = "1.1.0"
