"""Tables to arrays: preprocess without options against polars, pandas and pyarrow, which read and save.

usage: tables.py PROGRAM FOLDER [ROUNDS [TABLE...]]

PROGRAM is penstock or preprocess. FOLDER gets the tables, 200,000 x 50 and 2,000,000 x 10 each, such as 200000-long.csv:

    floats.csv     float32 columns in as few digits as they need, and a label from 0 to 9
    long.csv       float64 columns of up to 17 digits, and a label
    mixed.csv      floats, whole numbers, names, texts in quotes, and a label that is a word
    floats.jsonl   as floats.csv
    floats.parquet as floats.csv

The others save each column of numbers with numpy.save, and texts as uncompressed Arrow. Every program is a process of
its own, on two threads, and takes its turn in each round; one that needs three times the time of the best in the first
round is not asked again. Printed are medians of wall time and of CPU time, and of the best of the others over
preprocess: above 1 preprocess is faster.
"""
import os
import resource
import statistics
import subprocess
import sys
import time

SIZES = ((200_000, 50), (2_000_000, 10))
KINDS = "floats.csv", "long.csv", "mixed.csv", "floats.jsonl", "floats.parquet"
PEERS = {
    "polars": """
import numpy as np, polars
t = polars.{read}({file!r})
texts = [c for c in t.columns if t[c].dtype == polars.String]
for c in t.columns:
    c in texts or np.save(c + ".npy", t[c].to_numpy())
if texts:
    t.select(texts).write_ipc("texts.arrow")
""",
    "pandas": """
import numpy as np, pandas
t = pandas.{read}({file!r}{lines})
texts = [c for c in t.columns if t[c].dtype.kind not in "iufb"]
for c in t.columns:
    c in texts or np.save(c + ".npy", t[c].to_numpy())
if texts:
    t[texts].to_feather("texts.arrow", compression="uncompressed")
""",
    "pyarrow": """
import numpy as np, pyarrow, pyarrow.feather, pyarrow.{module}
pyarrow.set_cpu_count(2)
t = pyarrow.{module}.{read}({file!r})
texts = [f.name for f in t.schema if f.type == pyarrow.string()]
for c in t.column_names:
    c in texts or np.save(c + ".npy", t[c].to_numpy())
if texts:
    pyarrow.feather.write_feather(t.select(texts), "texts.arrow", compression="uncompressed")
""",
}
READ = {
    "polars": {"csv": "read_csv", "jsonl": "read_ndjson", "parquet": "read_parquet"},
    "pandas": {"csv": "read_csv", "jsonl": "read_json", "parquet": "read_parquet"},
    "pyarrow": {"csv": "read_csv", "jsonl": "read_json", "parquet": "read_table"},
}
HOPELESS = 3  # times the best of the first round


def generate(kind, rows, columns):
    import numpy as np
    import polars as pl

    r = np.random.default_rng(1)
    label = r.integers(0, 10, rows)
    if kind == "mixed.csv":
        words = np.array(["setosa", "versicolor", "virginica", "unknown"])
        made = [
            lambda i: r.standard_normal(rows).astype("f4"),
            lambda i: r.integers(-1000, 1_000_000, rows),
            lambda i: r.standard_normal(rows).round(3),
            lambda i: [f"name {n}" for n in r.integers(0, rows, rows)],
            lambda i: r.standard_normal(rows),
        ]
        data = {f"x{i}": made[i % 5](i) for i in range(columns - 2)}
        data["note"] = [f'said "{n}", twice' if n % 3 == 0 else f"line {n}" for n in r.integers(0, 1000, rows)]
        table = pl.DataFrame({**data, "label": words[label % 4]})
    else:
        of = "f8" if kind == "long.csv" else "f4"
        data = {f"x{i}": r.standard_normal(rows).astype(of) for i in range(columns - 1)}
        table = pl.DataFrame({**data, "label": label})
    write = {"csv": table.write_csv, "jsonl": table.write_ndjson, "parquet": table.write_parquet}
    write[kind.split(".")[1]](f"{rows}-{kind}")


def spent():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def run(command):
    cpu, wall = spent(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - wall, spent() - cpu


def commands(program, file):
    """Returns the command of each program that makes arrays of a file."""
    ours = [program, "preprocess"] if os.path.basename(program) == "penstock" else [program]
    made = {"preprocess": [*ours, file, "ds", "--overwrite", "--quiet"]}
    kind = file.rsplit(".", 1)[1]
    module = "json" if kind == "jsonl" else kind
    for peer, text in PEERS.items():
        lines = ", lines=True" if kind == "jsonl" else ""
        text = text.format(read=READ[peer][kind], module=module, file=file, lines=lines)
        made[peer] = [sys.executable, "-c", text]
    return made


def measure(made, rounds):
    """Returns the times of each program, wall and CPU, by round."""
    times = {name: [] for name in made}
    for number in range(rounds):
        for name, command in made.items():
            if number > 0 and times[name][0][1] > HOPELESS * min(t[0][1] for t in times.values()):
                continue
            times[name].append(run(command))
    return times


def main():
    program, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    os.environ.update(POLARS_MAX_THREADS="2", OMP_NUM_THREADS="2", GOMAXPROCS="2")
    print(f"rounds {rounds}, load {os.getloadavg()[0]:.1f}; seconds (CPU seconds)", flush=True)
    print("| table | preprocess | polars | pandas | pyarrow | wall, best over ours | CPU, best over ours |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for kind in KINDS:
        for rows, columns in SIZES:
            file = f"{rows}-{kind}"
            if sys.argv[4:] and file not in sys.argv[4:]:
                continue
            if not os.path.exists(file):
                generate(kind, rows, columns)
            times = measure(commands(program, file), rounds)
            middle = {n: [statistics.median(t[k] for t in list) for k in (0, 1)] for n, list in times.items()}
            cells = [f"{wall:.2f} ({cpu:.2f})" for wall, cpu in middle.values()]
            ours = middle.pop("preprocess")
            of = [min(m[k] for m in middle.values()) / ours[k] for k in (0, 1)]
            print(f"| {rows:,} x {columns}, {kind} | {' | '.join(cells)} | {of[0]:.2f} | {of[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
