"""Worker: train a model whose layers are on several ranks."""

import os
import sys
import warnings
from copy import deepcopy

# PyTorch's own code for RPC and for optimizers still uses what it has deprecated.
warnings.filterwarnings("ignore", "You are using a Backend", UserWarning)
warnings.filterwarnings("ignore", "`torch.jit.* is deprecated", DeprecationWarning)

import torch
import torch.distributed.autograd as dist_autograd
from torch import nn
from torch.distributed import rpc
from torch.distributed.optim import DistributedOptimizer


def gradients_of(layer, context):
    gradients = dist_autograd.get_gradients(context)
    parameters = list(layer.local_value().parameters())
    assert all(p.grad is None for p in parameters)
    return [gradients[p] for p in parameters]


# [parameters]
def parameters_of(layer):
    return [rpc.RRef(p) for p in layer.local_value().parameters()]
# [/parameters]


torch.manual_seed(0)
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
name = ["driver", "left", "right"][rank]
rpc.init_rpc(name, rank=rank, world_size=world_size)

if name != "driver":
    rpc.shutdown()  # Serves calls until all ranks have called shutdown.
    sys.exit()

# [model]
embedding = rpc.remote("left", nn.Embedding, args=(8, 4))
lstm = nn.LSTM(4, 16)
decoder = rpc.remote("right", nn.Linear, args=(16, 8))
layers = [embedding, rpc.RRef(lstm), decoder]


def model(tokens):
    vectors = embedding.rpc_sync().forward(tokens)
    hidden, _ = lstm(vectors)
    return decoder.rpc_sync().forward(hidden)
# [/model]


embedding_here, lstm_here = embedding.to_here(), deepcopy(lstm)
decoder_here = decoder.to_here()
parameters_here = [
    parameter
    for layer in (embedding_here, lstm_here, decoder_here)
    for parameter in layer.parameters()
]


def model_here(tokens):
    hidden, _ = lstm_here(embedding_here(tokens))
    return decoder_here(hidden)


# [loss]
# Eight sequences that count modulo 8; the model shall tell the next token.
tokens = (torch.arange(9).unsqueeze(1) + torch.arange(8)) % 8


def loss_of(model):
    outputs = model(tokens[:-1]).flatten(0, 1)
    return nn.functional.cross_entropy(outputs, tokens[1:].flatten())
# [/loss]


with dist_autograd.context() as context:
    loss = loss_of(model)
    dist_autograd.backward(context, [loss])
    gradients = []
    for layer in layers:
        to = layer.owner()
        gradients += rpc.rpc_sync(to, gradients_of, args=(layer, context))

loss_of(model_here).backward()
torch.testing.assert_close(gradients, [p.grad for p in parameters_here])
print(f"gradient of the embedding on left: norm {gradients[0].norm():.4f},", end=" ")
print(f"in one process {parameters_here[0].grad.norm():.4f}")
first_loss = loss.item()

# [optimizer]
parameters = []
for layer in layers:
    to = layer.owner()
    parameters += rpc.rpc_sync(to, parameters_of, args=(layer,))
optimizer = DistributedOptimizer(torch.optim.SGD, parameters, lr=1.0)

for step in range(40):
    with dist_autograd.context() as context:
        loss = loss_of(model)
        dist_autograd.backward(context, [loss])
        optimizer.step(context)
# [/optimizer]

optimizer_here = torch.optim.SGD(parameters_here, lr=1.0)
for step in range(40):
    optimizer_here.zero_grad()
    loss_here = loss_of(model_here)
    loss_here.backward()
    optimizer_here.step()

trained = [parameter.to_here() for parameter in parameters]
torch.testing.assert_close(trained, parameters_here)
print(f"loss {first_loss:.4f} -> {loss.item():.4f},", end=" ")
print(f"in one process {loss_here.item():.4f}")
assert loss.item() < first_loss / 4 and len(trained) == 7

rpc.shutdown()
