"""Tables to arrays: preprocess against polars and pyarrow, which read into NumPy and save with numpy.save.

usage: tables.py PREPROCESS FOLDER [ROUNDS [FILE...]]

FOLDER gets the tables: random float32 columns and a label, as CSV, JSON lines and Parquet. Every program is a
process of its own, on two threads, and takes its turn in each round. Printed are the fastest wall time and the
least CPU time of each, and both of preprocess as a ratio to the best of the others.
"""
import os
import resource
import subprocess
import sys
import time

SIZES = ((200_000, 50), (2_000_000, 10))
READ = {
    "polars": {"csv": "read_csv", "jsonl": "read_ndjson", "parquet": "read_parquet"},
    "pyarrow": {"csv": "csv.read_csv", "jsonl": "json.read_json", "parquet": "parquet.read_table"},
}
POLARS = """
import numpy as np, polars
t = polars.{read}({file!r})
np.save("x.npy", t.drop("label").to_numpy().astype("f4", copy=False))
np.save("label.npy", t["label"].to_numpy())
"""
PYARROW = """
import numpy as np, pyarrow, pyarrow.{module}
pyarrow.set_cpu_count(2)
t = pyarrow.{read}({file!r})
np.save("x.npy", np.stack([t[n].to_numpy() for n in t.column_names if n != "label"], 1).astype("f4", copy=False))
np.save("label.npy", t["label"].to_numpy())
"""


def generate(rows, columns):
    import numpy as np
    import polars as pl

    r = np.random.default_rng(1)
    x = {f"x{i}": r.standard_normal(rows).astype("f4") for i in range(columns)}
    t = pl.DataFrame({**x, "label": r.integers(0, 10, rows)})
    t.write_parquet(f"{rows}.parquet")
    t.write_csv(f"{rows}.csv")
    t.write_ndjson(f"{rows}.jsonl")


def spent():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def run(command):
    cpu, wall = spent(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - wall, spent() - cpu


def main():
    program, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    os.environ.update(POLARS_MAX_THREADS="2", OMP_NUM_THREADS="2", GOMAXPROCS="2")
    print("| table | preprocess, s (CPU) | polars | pyarrow | wall, of the best | CPU, of the best |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for rows, columns in SIZES:
        for kind in "csv", "jsonl", "parquet":
            file = f"{rows}.{kind}"
            if sys.argv[4:] and file not in sys.argv[4:]:
                continue
            if not os.path.exists(file):
                generate(rows, columns)
            fields = f"x*=x:float32[{columns}],label:int64"
            commands = {"preprocess": [program, file, "ds", "--overwrite", "--quiet", "--fields", fields]}
            for peer, text in ("polars", POLARS), ("pyarrow", PYARROW):
                read = READ[peer][kind]
                commands[peer] = [sys.executable, "-c", text.format(read=read, module=read.split(".")[0], file=file)]
            times = {name: [] for name in commands}
            for _ in range(rounds):
                for name, command in commands.items():
                    times[name].append(run(command))
            best = {name: [min(t[k] for t in list) for k in (0, 1)] for name, list in times.items()}
            cells = [f"{best[n][0]:.2f} ({best[n][1]:.2f})" for n in ("preprocess", "polars", "pyarrow")]
            of = [best["preprocess"][k] / min(best["polars"][k], best["pyarrow"][k]) for k in (0, 1)]
            print(f"| {rows:,} x {columns}, {kind} | {' | '.join(cells)} | {of[0]:.2f} | {of[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
