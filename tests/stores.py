"""Stores written in Python, which pass each call on to another one, and show or change it."""

import time

import torch.distributed as dist

_KEPT = []  # a store in Python ends with its last owner there, although C++ owns it, too

# The methods that c10d calls; two of them have other names in Python.
METHODS = {name: name for name in ["set", "get", "add", "check", "wait", "compare_set"]}
METHODS |= {"multi_get": "multi_get", "deleteKey": "delete_key", "append": "append"}


class PassingStore(dist.Store):
    """Passes each call on. What `alter(name, keys, answer)` returns is the answer."""

    def __init__(self, store, alter=lambda name, keys, answer: answer):
        super().__init__()
        self.store, self.alter = store, alter
        _KEPT.append(self)

    def has_extended_api(self):
        """Return whether there is a multi_get."""
        return True


def _passing(name, own):
    def method(self, keys, *arguments):
        answer = getattr(self.store, own)(keys, *arguments)
        return self.alter(name, keys if isinstance(keys, list) else [keys], answer)

    return method


for _name, _own in METHODS.items():
    setattr(PassingStore, _name, _passing(_name, _own))


def counting(counts):
    """Return an `alter` that counts the requests for each key of a group, without its numbers."""

    def alter(name, keys, answer):
        counts.append((name, keys))
        return answer

    return alter


def lost_at(word):
    """Return an `alter` to which the store is lost once a key with this word is read."""
    lost = []

    def alter(name, keys, answer):
        if lost or (name != "set" and any(word in key for key in keys)):
            lost.append(keys)
            raise dist.DistNetworkError("the connection is cut")
        return answer

    return alter


def slow_at(word, seconds):
    """Return an `alter` that holds up each answer for keys with this word."""

    def alter(name, keys, answer):
        if any(word in key for key in keys):
            time.sleep(seconds)
        return answer

    return alter


def junk_at(word, junk):
    """Return an `alter` that answers with `junk` for keys that end with this word."""

    def alter(name, keys, answer):
        if name == "multi_get":
            return [junk if k.endswith(word) else x for k, x in zip(keys, answer, strict=True)]
        return junk if name == "compare_set" and keys[0].endswith(word) else answer

    return alter
