"""The gain of a loop that follows an advice, and how sentences say it.

The sentences of ``diagnose`` are made in _code/measure.py for own datasets, and in functions/costs.py for functions.
"""

from __future__ import annotations

#: A larger gain is not predicted: smaller costs would limit the loop then.
MOST_GAIN = 4.0
#: As many times more workers are advised in one step, at most.
_MORE_AT_ONCE = 8
#: The share of a loop's time for which workers who wait can feed it, as they finish at random times.
_MOST_FED = 0.92


def more_at_once(loop: float, body: float, work: float, workers: int) -> tuple[int, float]:
    """Return as many workers as keep a loop busy whose workers wait for something else than a core, and how many times as fast it would be.

    Args:
        loop: The time of the loop.
        body: The part of it that is training.
        work: The time of all workers at work.
        workers: How many there are; 0 if the loop does the work.
    """
    have = max(1, workers)
    number = max(have + 1, min(_MORE_AT_ONCE * have, int(work / max(1, body)) + 1))
    return number, max(1.0, _MOST_FED * loop / max(body, work / number, 1))


def times_as_fast(gain: float) -> str:
    """Return what a loop gains at most, in words."""
    return f"up to {gain:.1f} times as fast" if gain <= MOST_GAIN else f"more than {MOST_GAIN:.0f} times as fast"
