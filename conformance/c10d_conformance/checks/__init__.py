"""The checks, one module for each kind of promise; a module's name begins the ids of its checks."""
