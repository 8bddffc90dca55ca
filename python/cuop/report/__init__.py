"""Pages of HTML that need nothing beside themselves: their frame, and the time line of ranks."""
