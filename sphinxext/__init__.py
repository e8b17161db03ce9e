"""Sphinx extensions, one small file for each job, of use to any project."""
