"""Differential tests: random cases through penstock and through the libraries that users know.

`make test-peers` runs them, with torch, torchvision, pandas and others, which `.ci/deps python` installs. Each file is `test_*.py`
of unittest, and imports what it needs. A test of random cases is decorated:

    from tests.peers import cases

    class Filters(unittest.TestCase):
        @cases(200)
        def test_as_pandas(self, rng: random.Random) -> None:
            ...

It runs 200 times, each time with a generator of its own; `PEERS_CASES=20000` sets the number for all, and `PEERS_CASES=x10`
multiplies each. The seed is random and printed: `PEERS_SEED=n` repeats a run, `PEERS_CASES=FIRST:COUNT` runs some cases of it and `PEERS_CASE=i` one.
"""

import functools
import os
import random
import sys
import traceback
import unittest

SEED = int(os.environ.get("PEERS_SEED") or random.SystemRandom().randrange(1 << 32))
SHOWN = 5  # failing cases that are printed; the others are counted


def chosen(default):
    """Return the numbers of the cases that a test runs: the first ones, as many as default, unless the environment says otherwise."""
    wanted, one = os.environ.get("PEERS_CASES", ""), os.environ.get("PEERS_CASE")
    if one:
        return range(int(one), int(one) + 1)
    if wanted.startswith("x"):
        return range(default * int(wanted[1:]))
    first, _, count = wanted.rpartition(":")
    return range(int(first or 0), int(first or 0) + int(count or default))


def cases(default):
    """Decorate a test method of unittest that takes self and a random.Random: run it that many times."""

    def decorate(check):
        @functools.wraps(check)
        def run(self):
            failed, ran, skipped = [], 0, 0
            for i in chosen(default):
                try:
                    check(self, random.Random(f"{SEED} {check.__qualname__} {i}"))
                    ran += 1
                except unittest.SkipTest:
                    skipped += 1
                except Exception:
                    ran += 1
                    failed.append(i)
                    if len(failed) <= SHOWN:
                        print(f"PEERS_SEED={SEED} PEERS_CASE={i} {check.__qualname__}:\n{traceback.format_exc()}", file=sys.stderr)
            print(f"{check.__qualname__}: {ran} cases, {len(failed)} differences, {skipped} skipped, PEERS_SEED={SEED}", file=sys.stderr)
            if failed:
                self.fail(f"{len(failed)} of {ran} cases differ, the first with PEERS_SEED={SEED} PEERS_CASE={failed[0]}")
            if not ran:
                self.fail(f"all {skipped} cases are skipped, so that nothing is compared")

        del run.__wrapped__  # or unittest's tools would look for rng
        return run

    return decorate


def load_tests(loader, standard_tests, pattern):
    """Leave these tests to `make test-peers`: those of the package itself need NumPy alone."""
    if not os.environ.get("PENSTOCK_PEERS"):
        return standard_tests
    here = os.path.dirname(os.path.abspath(__file__))
    return loader.discover(here, pattern, os.path.dirname(os.path.dirname(here)))


class Left(unittest.TestCase):
    @unittest.skip("make test-peers runs the tests against torch, torchvision, pandas and others")
    def test_peers(self):
        pass
