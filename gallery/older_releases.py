"""Start programs that PyTorch 2.13 cannot run, because it has no backends in Python."""

import re

import launcher


def launch(worker, *, ranks):
    """Do what ``launcher.launch`` does, or print the TypeError with which PyTorch 2.13 refuses."""
    try:
        launcher.launch(worker, ranks=ranks)
    except launcher.RankError as error:
        if not (refusal := re.search(r"^TypeError: .+", str(error), re.M)):
            raise
        print(refusal[0])
