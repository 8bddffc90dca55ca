"""Benchmarks against the peers that users would otherwise choose, measured in one run."""
