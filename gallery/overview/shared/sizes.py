"""The sizes of what training keeps in memory, in bytes."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


# [state]
def size_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def sizes_of_state(model, adam):
    state = adam.state.values()
    return {
        "parameters": size_of(model.parameters()),
        "gradients": size_of(p.grad for p in model.parameters()),
        "optimizer state": size_of(s["exp_avg"] for s in state)
        + size_of(s["exp_avg_sq"] for s in state),
    }
# [/state]


# [activations]
def size_of_activations(layers, inputs, run=nn.Module.__call__):
    parameters = {p.untyped_storage().data_ptr() for p in layers.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        for layer in layers:
            inputs = run(layer, inputs)
    return sum(kept.values())


def run_checkpointed(layer, inputs):
    return checkpoint(layer, inputs, use_reentrant=False)
# [/activations]
