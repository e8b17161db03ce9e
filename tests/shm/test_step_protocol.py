"""The step protocol holds in every order of events, and the model notices mistakes."""

import pytest
from communicate.shared import step_protocol_model as model
from communicate.shared.step_protocol_model import Wrong, explore, reads_in


def programs(size, order, readers_of):
    return [reads_in(order, readers_of(rank, size)) for rank in range(size)]


def everyone(rank, size):
    return list(range(size))


def only_the_root(rank, size):
    return list(range(1, size)) if rank == 0 else []


def from_the_root(rank, size):
    return [] if rank == 0 else [0]


ORDERS = {"one after another": model.one_after_another, "one ahead": model.one_ahead}
READERS = [everyone, only_the_root, from_the_root]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("readers_of", READERS)
@pytest.mark.parametrize(("size", "steps"), [(2, 5), (3, 3)])
def test_holds_in_every_order_of_events(size, steps, order, readers_of):
    assert explore(programs(size, ORDERS[order](steps), readers_of)) > 50


# If all ranks read all others, none gets far enough ahead to do harm with one step.
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("readers_of", [only_the_root, from_the_root])
@pytest.mark.parametrize("size", [2, 3])
def test_finds_a_slot_that_is_free_one_step_too_early(size, order, readers_of):
    with pytest.raises(Wrong, match="writes step"):
        explore(programs(size, ORDERS[order](4), readers_of), too_early=1)


@pytest.mark.parametrize("size", [2, 3])
def test_symmetric_operations_hide_the_mistake_unless_they_post_ahead(size):
    explore(programs(size, model.one_after_another(4), everyone), too_early=1)
    with pytest.raises(Wrong, match="writes step"):
        explore(programs(size, model.one_ahead(4), everyone), too_early=1)


def test_finds_a_deadlock():
    program = [("free", 0), (("wait", 1), 0)]
    other = [("free", 0), (("wait", 0), 0)]
    with pytest.raises(Wrong, match="deadlock"):
        explore([program, other])
