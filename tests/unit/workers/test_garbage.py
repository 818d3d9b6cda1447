"""How often a worker looks for garbage."""

import gc
import subprocess
import sys

from poller.workers.process import garbage

PROGRAM = """
import gc
from poller.workers.process import garbage
class Circle:
    def __init__(self): self.me = self
garbage.look_less_often()
frozen = gc.get_freeze_count()
most = 0
for _ in range(3 * garbage.YOUNG):
    Circle()
    most = max(most, gc.get_count()[0])
left = sum(type(thing) is Circle for thing in gc.get_objects())
print(frozen, left, most)
"""


def test_garbage_in_circles_is_still_found():
    """However many polls leave circles behind, no more than a bounded number of them stays."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    frozen, left, most = map(int, done.stdout.split())
    assert frozen > 1000
    assert left <= garbage.YOUNG
    assert most <= garbage.YOUNG + 1


def test_this_process_keeps_its_own_thresholds():
    """Importing the module changes nothing: only a worker process calls it."""
    assert gc.get_threshold()[0] < garbage.YOUNG
