"""The `cuop` command: one file a subcommand, thin over the library."""
