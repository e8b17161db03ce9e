"""The step protocol holds in every order of events. The page of the model shows its mistakes."""

import pytest
from communicate.shared import step_protocol_model as model
from communicate.shared.step_protocol_model import explore, reads_in


def programs(size, order, sources_of):
    return [reads_in(order, sources_of(rank, size)) for rank in range(size)]


def everyone(rank, size):
    return list(range(size))


def only_the_root(rank, size):
    return list(range(1, size)) if rank == 0 else []


def from_the_root(rank, size):
    return [] if rank == 0 else [0]


ORDERS = {"one after another": model.one_after_another, "one ahead": model.one_ahead}
SOURCES = [everyone, only_the_root, from_the_root]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("sources_of", SOURCES)
@pytest.mark.parametrize(("size", "steps"), [(2, 5), (3, 3)])
def test_holds_in_every_order_of_events(size, steps, order, sources_of):
    assert explore(programs(size, ORDERS[order](steps), sources_of)) > 50
