"""A model of which one layer takes no part, for the programs that count what DDP then calls."""

import warnings

from torch import nn

# CommDebugMode of PyTorch 2.13, which counts, warns when no input requires a gradient.
warnings.filterwarnings("ignore", "Full backward hook is firing")


# [model]
class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.taken, self.left_out = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, inputs):
        return self.taken(inputs)
# [/model]
