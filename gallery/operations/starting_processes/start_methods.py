"""Program: what a child has of its parent's state, by start method."""

import multiprocessing
import threading
import warnings

# Python 3.12 and later warn of what this program shows.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)

value = "set by the import"
lock = threading.Lock()


def child(results):
    results.put((value, lock.acquire(timeout=0.5)))


def ask(method):
    context = multiprocessing.get_context(method)
    results = context.SimpleQueue()
    process = context.Process(target=child, args=(results,))
    process.start()
    answer = results.get()
    process.join()
    return answer


def hold_the_lock(held, release):
    with lock:
        held.set()
        release.wait()


if __name__ == "__main__":
    value = "changed by the parent"
    held, release = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold_the_lock, args=(held, release))
    thread.start()
    held.wait()  # From here on, a thread of the parent holds the lock.

    answers = {method: ask(method) for method in ("spawn", "forkserver", "fork")}
    release.set()
    thread.join()

    for method, (seen, got_lock) in answers.items():
        print(f"{method:10}  value: {seen:22}  could take the lock: {got_lock}")
    assert answers["spawn"] == answers["forkserver"] == ("set by the import", True)
    assert answers["fork"] == ("changed by the parent", False)
