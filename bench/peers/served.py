"""The loop of a program that bench/internal/measure asks: one request of JSON a line in, one answer a line out."""
import json
import os
import sys
import time


def serve(answer):
    """Answers until there are no more requests. An error is an answer. What libraries print goes to stderr."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            a = answer(json.loads(line))
        except Exception as e:
            a = {"error": f"{os.path.basename(sys.argv[0])}: {type(e).__name__}: {e}"}
        print(json.dumps(a), file=out, flush=True)


def timed(do, cpu=time.process_time):
    """Returns the seconds that a function takes, by the clock and of CPU time."""
    before, began = cpu(), time.perf_counter()
    do()
    return {"wall": time.perf_counter() - began, "cpu": cpu() - before}


def cpu_time():
    """CPU time of this process and of those that it started, ended ones included."""
    total, todo = 0, [os.getpid()]
    while todo:
        pid = todo.pop()
        try:
            with open(f"/proc/{pid}/stat") as f:
                total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:15]))
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as f:
                    todo += map(int, f.read().split())
        except OSError:
            pass
    return total / os.sysconf("SC_CLK_TCK")
