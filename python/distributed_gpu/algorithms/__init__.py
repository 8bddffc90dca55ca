"""The distributed algorithms: input on rank 0 (None elsewhere), result on rank 0 (None elsewhere)."""
