"""What the Makefile calls: one module for each stage of the build."""
