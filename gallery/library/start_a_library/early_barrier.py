"""Program: answer the barrier of rank 0 while rank 1 has not started."""

from dialogue import show

# [mistake]
show([0], barrier=lambda: None, last=4)
# [/mistake]
