"""Costs of `pretraining-data` on a Flink cluster: processor time, memory, bytes between workers.

    python benchmarks/cluster.py --log cluster.jsonl --times 0 1 10 100

The input is the sixteen books of ../shared/data, so many times (0: a text of one kilobyte, for what
starting costs). Each is run here, on one host and on two hosts of the cluster of `tests/cluster`,
whose hosts are namespaces of this machine: so what counts is processor seconds, not the clock. A
line of the log is one run; what the log has is not run again. Highest memory (VmHWM, and
without libraries RssAnon) and processor time are read from /proc while the job runs, bytes from
Flink's REST API.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from tests.cluster.flink import Cluster  # noqa: E402

_TICKS = os.sysconf("SC_CLK_TCK")
_PLACES = {"local": None, "one host": 1, "two hosts": 2}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--log", type=Path, required=True, help="a file of JSON lines; resumed")
    parser.add_argument("--times", type=int, nargs="+", default=[0, 1, 10])
    parser.add_argument("--places", nargs="+", choices=_PLACES, default=[*_PLACES])
    parser.add_argument("--flags", default="--masking dynamic", help="of pretraining-data")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keras_bert_cluster_") as folder:
        folder = Path(folder)
        vocab = folder / "vocab.txt"
        books = sorted((arguments.data / "books").resolve().glob("*.txt"))
        _run(_command("vocab", "--input", *books, "--output", vocab, "--size", 8000))
        for times in arguments.times:
            texts = write_texts(folder / f"texts-{times}", books, times)
            command = ["pretraining-data", "--input", f"{texts}/*.txt", "--vocab", vocab]
            command += arguments.flags.split()
            for place in arguments.places:
                run = {"times": times, "place": place, "flags": arguments.flags}
                if not is_in(arguments.log, run):
                    run |= measured(command, place, folder / f"{times}-{place}".replace(" ", "-"))
                    with arguments.log.open("a") as log:
                        log.write(json.dumps(run) + "\n")
    report(arguments.log)


def write_texts(folder, books, times):
    """A folder with links to the books, each so many times, or with one short text."""
    folder.mkdir()
    for number in range(times):
        for book in books:
            (folder / f"{book.stem}-{number}.txt").symlink_to(book)
    if not times:
        (folder / "short.txt").write_text(books[0].read_text()[:1000])
    return folder


def is_in(log, run):
    runs = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
    return any(run.items() <= earlier.items() for earlier in runs)


def measured(command, place, folder):
    """Runs a job, and returns what it cost; its output is deleted."""
    output, parallelism = folder / "data", _PLACES[place]
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        cluster = parallelism and stack.enter_context(Cluster(folder / "cluster"))
        command = [*command, "--output", output]
        names = {pid: name for name, pid in cluster.pids().items()} if cluster else {}
        with Processes({os.getpid(): "command"} | names) as processes:
            started = time.time()
            if cluster:
                process = cluster.start(*command, parallelism=parallelism)
            else:
                process = subprocess.Popen(
                    _command(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                )
            printed, errors = process.communicate()
            ended = time.time()
        if process.returncode:
            raise SystemExit(f"{printed}{errors}")
        card = json.loads((output / "dataset_card.json").read_text())
        shards = sorted(path.stat().st_mtime for path in output.glob("*.tfrecord-*"))
        run = {
            "bytes_of_text": card["counters"]["bytes_of_text"],
            "examples": sum(split["instances"] for split in card["splits"].values()),
            "shards": len(shards),
            "seconds": round(ended - started, 1),
            "first_shard": round(shards[0] - started, 1),
            "last_shard": round(shards[-1] - started, 1),
            "processes": processes.report(),
            "vertices": vertices(cluster, started) if cluster else None,
        }
    _run(["rm", "-r", folder])
    return run


def vertices(cluster, started):
    """The parts of the latest job by Flink's account: name, times, bytes and records sent."""
    jobs = cluster.rest("/jobs/overview")["jobs"]
    job = cluster.rest(f"/jobs/{max(jobs, key=lambda job: job['start-time'])['jid']}")
    return [
        {
            "name": vertex["name"][:200],
            "start": round(vertex["start-time"] / 1000 - started, 1),
            "seconds": round(vertex["duration"] / 1000, 1),
            "bytes": vertex["metrics"]["write-bytes"],
            "records": vertex["metrics"]["write-records"],
        }
        for vertex in job["vertices"]
    ]


class Processes(threading.Thread):
    """Reads the processor time and the highest memory of processes and of all that they start.

    Args:
        names: process id -> name; one that they start is named by its program.
    """

    def __init__(self, names):
        super().__init__(daemon=True)
        self._names, self._is_done = names, threading.Event()
        self._before, self._latest = {}, {}

    def __enter__(self):
        self._before = {pid: cost[1] for pid, cost in self._read().items()}
        self.start()
        return self

    def __exit__(self, *exception):
        self._is_done.set()
        self.join()

    def run(self):
        while not self._is_done.wait(0.5):
            self._latest |= self._read()

    def report(self):
        """The processes with their processor seconds since the start and highest MiB."""
        return [
            {
                "name": name,
                "processor": round(processor - self._before.get(pid, 0), 1),
                "mebibytes": round(highest),
                "anonymous": round(anonymous),
            }
            for pid, (name, processor, highest, anonymous) in sorted(self._latest.items())
            if pid != os.getpid() and highest > 20
        ]

    def _read(self):
        """Process id -> (name, processor seconds, MiB with and without shared libraries)."""
        parents, costs = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, IndexError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1]), (int(fields[11]) + int(fields[12]))
        for pid, (_, ticks) in parents.items():
            line = [pid]
            while line[-1] in parents and line[-1] not in self._names:
                line.append(parents[line[-1]][0])
            if line[-1] in self._names:
                with contextlib.suppress(OSError, TypeError):  # it has ended, or has no memory left
                    status = Path(f"/proc/{pid}/status").read_text()
                    highest, anonymous = (
                        int(re.search(rf"{key}:\s+(\d+) kB", status)[1]) / 1024
                        for key in ("VmHWM", "RssAnon")
                    )
                    earlier = self._latest.get(pid, (None, 0, 0, 0))[3]
                    name = self._names[line[-1]] + (_program(pid) if len(line) > 1 else "")
                    costs[pid] = name, ticks / _TICKS, highest, max(anonymous, earlier)
        return costs


def _program(pid):
    command = Path(f"/proc/{pid}/cmdline").read_text()
    programs = {"SdkHarness": ": worker", "data_gen.worker": ": worker", "keras_bert": ""}
    return next((programs[word] for word in programs if word in command), ": other")


def report(log):
    print("| text | | examples | processor s | examples/processor s | bytes sent | memory, MiB |")
    print("|---|---|---|---|---|---|---|")
    for run in map(json.loads, log.read_text().splitlines()):
        processor = sum(process["processor"] for process in run["processes"])
        sent = sum(vertex["bytes"] for vertex in run["vertices"] or ())
        highest = {}
        for process in run["processes"]:
            name = process["name"].rpartition(": ")[2]
            highest[name] = max(highest.get(name, 0), process["mebibytes"])
        print(
            f"| {run['bytes_of_text'] / 1e6:,.1f} MB | {run['place']} | {run['examples']:,} "
            f"| {processor:,.0f} | {run['examples'] / processor:,.0f} | {sent:,} "
            f"| {', '.join(f'{name} {memory}' for name, memory in highest.items())} |"
        )


def _command(*arguments):
    return [sys.executable, "-m", "keras_bert", *map(str, arguments)]


def _run(command):
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
