"""A Flink cluster from packages: Flink from PyPI, Beam's job server from Maven, workers from here.

Two hosts are two network namespaces, each with a TaskManager of one slot and a pool of Beam workers
on its loopback, as two machines would have them. If namespaces cannot be made, both TaskManagers
are on this machine's loopback and share one pool.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
INSTALLED = REPOSITORY / "build" / "cluster"
FLINK = "1.19.3"
JOB_SERVER = "2.62.0"  # the newest of which Maven has both artifacts, with Flink 1.19
JAVA = 17
_NETWORK = "10.231.7"
_HOSTS = ("jobmanager", "taskmanager1", "taskmanager2")
_POOL = "localhost:50000"
_SECONDS = 180
_INSTALL_SECONDS = 900

_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>job-server</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.beam</groupId><artifactId>beam-runners-flink-1.19</artifactId>
      <version>{JOB_SERVER}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""

# Flink's scripts, which PyPI's package lacks, compute the sizes of memory; here they are given.
_CONFIGURATION = """\
jobmanager.rpc.address: {address}
jobmanager.rpc.port: 6123
jobmanager.bind-host: 0.0.0.0
jobmanager.memory.process.size: 1200m
rest.address: {address}
rest.port: 8081
rest.bind-address: 0.0.0.0
taskmanager.bind-host: 0.0.0.0
taskmanager.numberOfTaskSlots: 1
taskmanager.cpu.cores: 1.0
taskmanager.memory.task.heap.size: 900m
taskmanager.memory.task.off-heap.size: 0m
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.framework.off-heap.size: 128m
taskmanager.memory.network.min: 128m
taskmanager.memory.network.max: 128m
taskmanager.memory.managed.size: 512m
taskmanager.memory.jvm-metaspace.size: 256m
taskmanager.memory.jvm-overhead.min: 192m
taskmanager.memory.jvm-overhead.max: 192m
parallelism.default: 2
heartbeat.interval: 2000
heartbeat.timeout: 60000
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 3
restart-strategy.fixed-delay.delay: 5 s
io.tmp.dirs: {temporary}
"""

# What Flink opens of Java 17's own packages.
_OPENS = [
    f"--add-opens=java.base/java.{package}=ALL-UNNAMED"
    for package in (
        "lang", "net", "io", "nio", "lang.reflect", "text", "time", "util", "util.concurrent",
        "util.concurrent.atomic", "util.concurrent.locks",
    )
] + ["--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]  # fmt: skip


def missing():
    """The sentence that says what a cluster lacks on this machine; None if it lacks nothing."""
    for program in ("java", "mvn"):
        if not shutil.which(program):
            return f"A Flink cluster needs Java {JAVA} and Maven: there is no {program} here."
    version = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    number = re.search(r'version "(\d+)', version)
    if number is None or int(number[1]) != JAVA:
        return f"A Flink cluster needs Java {JAVA}: here is {version.splitlines()[0]}."
    return None


class NotInstalled(Exception):
    """A package could not be had; the message is the sentence that says so."""


def install():
    """Installs Flink and the job server below `build/`, if they are not there; -> (jars, jars).

    Raises `NotInstalled` if a package cannot be had.
    """
    flink, server = INSTALLED / f"flink-{FLINK}", INSTALLED / f"job-server-{JOB_SERVER}"
    if not flink.is_dir():
        partial = INSTALLED / "flink.partial"
        package = f"apache-flink-libraries=={FLINK}"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        _download([*pip, "--target", partial, package], package)
        partial.rename(flink)
    if not server.is_dir():
        partial = INSTALLED / "job-server.partial"
        partial.mkdir(parents=True, exist_ok=True)
        (partial / "pom.xml").write_text(_POM)
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=lib"]
        _download(["mvn", "--quiet", *copy], "Beam's job server for Flink", cwd=partial)
        partial.rename(server)
    return flink / "pyflink" / "lib", server / "lib"


def _download(command, name, **options):
    try:
        subprocess.run(command, check=True, timeout=_INSTALL_SECONDS, **options)
    except (subprocess.SubprocessError, OSError) as error:
        lack = f"A Flink cluster needs {name}, which could not be downloaded: {error}."
        raise NotInstalled(lack) from error


class Cluster:
    """A cluster of two TaskManagers, and the commands that run on it.

        with Cluster(folder) as cluster:
            cluster.run("vocab", "--input", …)

    Args:
        folder: for configuration, logs and artifacts; an absolute path.

    Attributes:
        has_hosts: whether the TaskManagers are on hosts (network namespaces) of their own.
    """

    def __init__(self, folder):
        self._folder = folder
        self._flink, self._server = install()
        self._processes = {}
        self.has_hosts = os.getuid() == 0 and bool(shutil.which("ip"))

    def __enter__(self):
        try:
            self._start_all()
        except BaseException:  # or its processes would outlive the tests
            self.__exit__()
            raise
        return self

    def _start_all(self):
        for name in ("logs", "conf", "artifacts", "temporary"):
            (self._folder / name).mkdir(parents=True)
        if self.has_hosts:
            try:
                self._make_hosts()
            except subprocess.CalledProcessError:  # a container that may not
                self._delete_hosts()
                self.has_hosts = False
        address = self._address("jobmanager")
        settings = _CONFIGURATION.format(address=address, temporary=self._folder / "temporary")
        (self._folder / "conf" / "flink-conf.yaml").write_text(settings)
        self._start_java(
            "jobmanager",
            "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
            "--configDir", self._folder / "conf", "--executionMode", "cluster",
            host="jobmanager", heap="900m", jars=self._flink,
        )  # fmt: skip
        for number in (1, 2):
            self.start_taskmanager(number)
            if number == 1 or self.has_hosts:
                self.start_pool(number)
        self._start_java(
            "jobserver",
            "org.apache.beam.runners.flink.FlinkJobServerDriver",
            f"--flink-master={address}:8081", f"--job-host={address}", "--job-port=8099",
            "--artifact-port=8098", "--expansion-port=0",
            f"--artifacts-dir={self._folder / 'artifacts'}",
            host="jobmanager", heap="1200m", jars=self._server,
        )  # fmt: skip
        self.wait_for_taskmanagers(2)

    def __exit__(self, *exception):
        for name in list(self._processes):
            self.kill(name)
        if self.has_hosts:
            self._delete_hosts()

    def start_taskmanager(self, number):
        name = f"taskmanager{number}"
        self._start_java(
            name,
            "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
            "--configDir", self._folder / "conf",
            "-D", f"taskmanager.host={self._address(name)}",
            "-D", f"taskmanager.resource-id={name}",
            host=name, heap="1028m", jars=self._flink,
            more=["-XX:MaxDirectMemorySize=512m", "-XX:MaxMetaspaceSize=256m"],
        )  # fmt: skip

    def start_pool(self, number, *, path=None):
        """Starts the pool of a host; `path` is put before its PATH in place of this environment."""
        program = [sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main"]
        first = path or Path(sys.executable).parent
        self._start(
            f"pool{number}",
            [*program, f"--service_port={_POOL.split(':')[1]}"],
            host=f"taskmanager{number}",
            PATH=f"{first}:{os.environ['PATH']}",
            PYTHONPATH=str(REPOSITORY),
        )

    def kill(self, name):
        """Kills a process and what it has started: "taskmanager1", "pool2", …"""
        process = self._processes.pop(name, None)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def workers(self, number):
        """The processes of the Beam workers that a host's pool has started."""
        group = os.getpgid(self._processes[f"pool{number}"].pid)
        workers = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command = (folder / "cmdline").read_bytes()
                if b"SdkHarness" in command and os.getpgid(int(folder.name)) == group:
                    workers.append(int(folder.name))
        return workers

    def pids(self):
        """The ids of the cluster's processes by name, without those of Beam's workers."""
        return {name: process.pid for name, process in self._processes.items()}

    def rest(self, path, method="GET"):
        """Returns Flink's answer to a path of its REST API ("/jobs/ID"), or None."""
        address = f"http://{self._address('jobmanager')}:8081{path}"
        program = (
            "import urllib.request as r; "
            f"request = r.Request({address!r}, method={method!r}); "
            "print(r.urlopen(request, timeout=5).read().decode())"
        )
        result = subprocess.run(
            self._on("jobmanager", [sys.executable, "-c", program]), capture_output=True
        )
        return json.loads(result.stdout) if result.returncode == 0 else None

    def cancel_jobs(self):
        """Cancels all jobs, which would keep the slots."""
        for job in self.rest("/jobs/overview")["jobs"]:
            if job["state"] in ("RUNNING", "RESTARTING", "CREATED"):
                self.rest(f"/jobs/{job['jid']}?mode=cancel", method="PATCH")

    def wait_for_taskmanagers(self, count):
        """Waits until so many are registered, for a few minutes at most."""
        for _ in range(_SECONDS):
            time.sleep(1)
            overview = self.rest("/overview")
            if overview and overview["taskmanagers"] == count:
                return
        raise TimeoutError(f"There are no {count} TaskManagers. See {self._folder / 'logs'}.")

    def start(self, *command, parallelism=2, pool=_POOL, endpoint=None):
        """Starts a command of this library as a job on the cluster; -> its `Popen`."""
        address = self._address("jobmanager")
        flags = [
            "--runner=PortableRunner",
            f"--job_endpoint={endpoint or f'{address}:8099'}",
            f"--artifact_endpoint={address}:8098",
            "--environment_type=EXTERNAL",
            f"--environment_config={pool}",
            f"--parallelism={parallelism}",
        ]
        return subprocess.Popen(
            self._on(
                "jobmanager", [sys.executable, "-m", "keras_bert", *map(str, command), *flags]
            ),
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command, seconds=600, **options):
        """Runs a command as a job on the cluster; -> its status and all that it wrote."""
        process = self.start(*command, **options)
        try:
            printed, errors = process.communicate(timeout=seconds)
        finally:
            process.kill()
        return process.returncode, printed + errors

    def _make_hosts(self):
        switch = _namespace("switch")
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", switch, "link", "set", "br0", "up")
        for number, host in enumerate(_HOSTS):
            name = _namespace(host)
            ends = f"kb{os.getpid()}h{number}", f"kb{os.getpid()}s{number}"
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("link", "add", ends[0], "netns", name, "type", "veth", "peer", "name", ends[1],
                "netns", switch)  # fmt: skip
            _ip("-n", switch, "link", "set", ends[1], "master", "br0", "up")
            _ip("-n", name, "addr", "add", f"{self._address(host)}/24", "dev", ends[0])
            _ip("-n", name, "link", "set", ends[0], "up")

    def _delete_hosts(self):
        for host in (*_HOSTS, "switch"):
            subprocess.run(
                ["ip", "netns", "del", _namespace(host)], check=False, capture_output=True
            )

    def _address(self, host):
        return f"{_NETWORK}.{10 + _HOSTS.index(host)}" if self.has_hosts else "127.0.0.1"

    def _on(self, host, command):
        return ["ip", "netns", "exec", _namespace(host), *command] if self.has_hosts else command

    def _start_java(self, name, main, *arguments, host, heap, jars, more=()):
        java = ["java", *_OPENS, f"-Xmx{heap}", *more, "-cp", f"{jars}/*", main]
        environment = {"FLINK_CONF_DIR": str(self._folder / "conf")}
        self._start(name, [*java, *map(str, arguments)], host=host, **environment)

    def _start(self, name, command, *, host, **environment):
        with (self._folder / "logs" / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self._on(host, command),
                stdout=log,
                stderr=log,
                env=os.environ | environment,
                start_new_session=True,
            )


def _namespace(host):
    return f"kb{os.getpid()}{host}"


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
