"""The soak of serving.py: the development server under the highest rate that it holds."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_bert.serving.ask import connect
from keras_bert.serving.errors import ServerError

ASKERS = 8
# What the server's memory may have grown by from the run's second quarter to its last one.
MAY_GROW = 0.10


def soak(folder, texts, *, minutes):
    """Prints what happened in each minute; returns the process's exit status."""
    command = [sys.executable, "-m", "keras_bert", "serve", "--rest-port", "0"]
    command += ["--models", str(folder / "ours float32")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = [server.stdout.readline() for _ in range(4)]
        (url,) = [line.split()[1] for line in lines if line.startswith("Page")]
        load = Load(url, texts)
        print("| minute | requests/s | p50 ms | p99 ms | failed | server MiB |")
        print("|---|---|---|---|---|---|", flush=True)
        memory = load.run(minutes, server.pid)
    finally:
        server.terminate()
        server.wait()
    quarter = max(1, len(memory) // 4)
    grown = np.median(memory[-quarter:]) / np.median(memory[quarter : 2 * quarter]) - 1
    print(f"{load.asked:,} requests, {len(load.failures)} failed; memory grew {grown:.1%}.")
    for failure in load.failures[:5]:
        print(f"  {failure}")
    return 1 if load.failures or grown > MAY_GROW else 0


class Load:
    """Askers that each wait for an answer before they ask again."""

    def __init__(self, url, texts):
        self._url = url
        self._texts = texts
        self._over = threading.Event()
        self._taken = []
        self.asked = 0
        self.failures = []
        with connect(self._url, timeout=60) as client:
            self._labels = self._answers(client, texts[:256])

    def run(self, minutes, pid):
        """The server's memory in MiB, several times a minute."""
        memory, end = [], time.monotonic() + 60 * minutes
        with ThreadPoolExecutor(ASKERS) as threads:
            askers = [threads.submit(self._ask, number) for number in range(ASKERS)]
            minute = 0
            while time.monotonic() < end:
                start, minute = time.monotonic(), minute + 1
                while time.monotonic() < min(end, start + 60):
                    time.sleep(min(5, max(0.1, end - time.monotonic())))
                    memory.append(_memory(pid))
                self._tell(minute, time.monotonic() - start, memory[-1])
            self._over.set()
            for asker in askers:
                asker.result()
        return memory

    def _tell(self, minute, seconds, memory):
        taken, self._taken = self._taken, []
        p50, p99 = (1e3 * np.percentile(taken or [0], fraction) for fraction in (50, 99))
        row = (minute, f"{len(taken) / seconds:.1f}", f"{p50:.0f}", f"{p99:.0f}")
        print(f"| {' | '.join(map(str, row))} | {len(self.failures)} | {memory:,.0f} |", flush=True)

    def _ask(self, number):
        rng = np.random.default_rng(number)
        with connect(self._url, timeout=60) as client:
            while not self._over.is_set():
                kind = rng.choice(["one", "long", "batch", "wrong"], p=[0.6, 0.15, 0.2, 0.05])
                start = time.perf_counter()
                try:
                    self._ask_one(kind, client, rng)
                except (ServerError, AssertionError) as error:
                    self.failures.append(f"{kind}: {error}")
                self._taken.append(time.perf_counter() - start)
                self.asked += 1

    def _ask_one(self, kind, client, rng):
        places = rng.integers(len(self._labels), size=16 if kind == "batch" else 1)
        texts = [self._texts[place] for place in places]
        if kind == "wrong":
            try:
                client.predict("ours float32", [{"nothing": texts[0]}])
            except ServerError as error:
                assert error.code == "INVALID_ARGUMENT", error
                return
            raise AssertionError("a request without its input was answered")
        if kind == "long":
            answers = self._answers(client, [" ".join(rng.choice(self._texts, 20))])
            assert len(answers) == 1
            return
        answers = self._answers(client, texts)
        # The lengths of the others in a batch may change the last bits, and nothing else.
        expected = np.array([self._labels[place] for place in places])
        np.testing.assert_allclose(answers, expected, atol=1e-4)

    @staticmethod
    def _answers(client, texts):
        answers = []
        for first in range(0, len(texts), 32):
            some = [{"text": text} for text in texts[first : first + 32]]
            answers += [row["probabilities"] for row in client.predict("ours float32", some)]
        return answers


def _memory(pid):
    """The memory of a process, in MiB."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
