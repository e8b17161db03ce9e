"""Measuring the shared-memory backend against gloo."""
