"""Solution: what one slot does to ranks that post one step ahead."""

from step_protocol_model import Wrong, explore, one_after_another, one_ahead, reads_in

everyone = [0, 1]
for order in (one_after_another, one_ahead):
    program = reads_in(order(3), everyone)
    try:
        explore([program, program], slots=1)
        print(f"{order.__name__}: holds")
    except Wrong as error:
        print(f"{order.__name__}: {error}")
