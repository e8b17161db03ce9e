"""Program: let the thread sanitizer watch two processes with a data race."""

from sanitized import compile_for, run

compile_for("thread", "publish_to_process.cpp", "publish_to_process")
run("relaxed, in two processes", "./publish_to_process")
