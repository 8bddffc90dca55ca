"""Helpers of programs that use distributed_gpu."""
