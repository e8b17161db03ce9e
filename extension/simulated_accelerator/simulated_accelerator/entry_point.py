"""What `import torch` loads, so that programs need not import the device.

A module of its own, because a program may import the device first: `import torch` is then a
line of the device's module, which has no function yet.
"""


def autoload():
    """Do nothing: to import this module, Python has imported the device."""
