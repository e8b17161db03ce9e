"""Program: let the thread sanitizer watch two threads, first with a data race."""

from sanitized import compile_for, run

# [race]
compile_for("thread", "publish.cpp", "publish")
run("publish<relaxed> and take<relaxed>", "./publish")
run("publish<release> and take<acquire>", "./publish", "cure")
# [/race]
