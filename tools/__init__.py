"""The stages of the build and the commands of the Makefile."""
