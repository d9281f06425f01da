"""The job on runners that are not this process: the path by which Dataflow and Flink run it."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.dataflow.dataflow_runner import DataflowRunner
from apache_beam.transforms import environments

from data_gen.files import Window
from data_gen.pretraining_data import Job, add_steps, pretraining_data
from data_gen.runner import run
from data_gen.settings import DataSettings
from tests.undrawn import undrawn

REPOSITORY = Path(__file__).resolve().parents[2]


def shard_bytes(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.tfrecord*")}


@pytest.mark.slow
def test_a_portable_job_service_with_workers_of_their_own_gives_the_same_bytes(
    corpus, corpus_files, tmp_path
):
    worker = f"{sys.executable} -m apache_beam.runners.worker.sdk_worker_main"
    runners = {
        "local": ["--direct_num_workers=1"],
        "portable": [
            "--runner=PortableRunner",
            "--job_endpoint=embed",
            "--environment_type=beam:env:harness_subprocess_python:v1",
            f"--environment_config={worker}",
            "--direct_num_workers=1",
        ],
    }
    for name, options in runners.items():
        with undrawn():
            pretraining_data(
                input=corpus_files, vocab=corpus.vocabulary, output=tmp_path / name,
                input_format="lines", dupe_factor=1, shard_bytes=20_000, drop_duplicates=True,
                replacement="unigram", beam_options=options,
            )  # fmt: skip
    assert shard_bytes(tmp_path / "local") == shard_bytes(tmp_path / "portable") != {}


@pytest.fixture(scope="module")
def worker_package(tmp_path_factory):
    """The package that workers install, built from setup.cfg as the documented command does."""
    copy, out = (tmp_path_factory.mktemp(name) for name in ("source", "dist"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        if (REPOSITORY / name).exists():
            shutil.copy(REPOSITORY / name, copy)
    for name in ("keras_bert", "data_gen"):
        shutil.copytree(
            REPOSITORY / name, copy / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    (copy / "README.md").touch()
    build = "import sys, setuptools.build_meta as b; print(b.build_sdist(sys.argv[1]))"
    result = subprocess.run(
        [sys.executable, "-c", build, out], cwd=copy, capture_output=True, text=True, check=True
    )
    return out / result.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def dataflow_graph(corpus, worker_package):
    """The job as it is sent to Dataflow: its graph, and the options that it is made with."""
    options = PipelineOptions([
        "--runner=DataflowRunner", "--project=p", "--region=europe-west1",
        "--temp_location=gs://bucket/tmp", "--sdk_location=container",
        f"--extra_package={worker_package}",
    ])  # fmt: skip
    settings = DataSettings(
        input=["gs://bucket/text.txt"], vocab="given", output="gs://bucket/data",
        replacement="unigram", drop_duplicates=True,
    )  # fmt: skip
    job = Job.from_settings(settings, vocabulary=corpus.vocabulary)
    windows = [Window("gs://bucket/text.txt", None, 0, None, 10**9)]
    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
    add_steps(pipeline, windows=windows, job=job)
    # What DataflowRunner.run_pipeline does before it talks to the cloud.
    pipeline.visit(DataflowRunner.combinefn_visitor())
    pipeline.visit(DataflowRunner.side_input_visitor())
    artifacts = environments.python_sdk_dependencies(options)
    environment = environments.DockerEnvironment.from_container_image(
        "gcr.io/image", artifacts=artifacts
    )
    return pipeline.to_runner_api(default_environment=environment)


def leaves(graph):
    """The transforms that do something: no composites, not even ones that pass on what they get."""
    return [
        transform
        for transform in graph.components.transforms.values()
        if not transform.subtransforms
        and not set(transform.outputs.values()) <= set(transform.inputs.values())
    ]


def test_every_stage_of_the_dataflow_job_is_portable(dataflow_graph):
    portable = {
        urn.urn
        for group in (common_urns.primitives, common_urns.combine_components)
        for urn in vars(group).values()
        if hasattr(urn, "urn")
    }
    transforms = leaves(dataflow_graph)
    assert len(transforms) > 20
    for transform in transforms:
        assert transform.spec.urn in portable, transform.unique_name
    assert any("CountUnigrams" in transform.unique_name for transform in transforms)
    docker = [
        environment
        for environment in dataflow_graph.components.environments.values()
        if environment.urn == common_urns.environments.DOCKER.urn
    ]
    assert docker
    for transform in transforms:
        environment = dataflow_graph.components.environments.get(transform.environment_id)
        assert environment is None or environment in docker, transform.unique_name


def test_the_worker_package_is_staged(dataflow_graph, worker_package):
    staged = {
        beam_runner_api_pb2.ArtifactStagingToRolePayload.FromString(
            artifact.role_payload
        ).staged_name
        for environment in dataflow_graph.components.environments.values()
        for artifact in environment.dependencies
    }
    assert worker_package.name in staged


UNPICKLE = """
import sys
from apache_beam.internal import pickler
from apache_beam.portability.api import beam_runner_api_pb2 as api
graph = api.Pipeline.FromString(open(sys.argv[1], "rb").read())
names = []
for transform in graph.components.transforms.values():
    if transform.spec.urn == "beam:transform:pardo:v1":
        do_fn = api.ParDoPayload.FromString(transform.spec.payload).do_fn
        if do_fn.urn == "beam:dofn:pickled_python_info:v1":
            names.append(type(pickler.loads(do_fn.payload)[0]).__name__)
import data_gen
print(data_gen.__file__, *names)
"""


def test_workers_can_load_every_step_from_the_package_alone(
    dataflow_graph, worker_package, tmp_path
):
    with tarfile.open(worker_package) as archive:
        archive.extractall(tmp_path, filter="data")
    [installed] = [path for path in tmp_path.iterdir() if path.is_dir()]
    (tmp_path / "graph").write_bytes(dataflow_graph.SerializeToString())
    result = subprocess.run(
        [sys.executable, "-c", UNPICKLE, tmp_path / "graph"], cwd=installed, text=True,
        capture_output=True, check=False, env={"TF_CPP_MIN_LOG_LEVEL": "3", "PATH": "/usr/bin"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    path, *names = result.stdout.split()
    assert Path(path).is_relative_to(installed)
    assert {"WriteShard", "Plan", "Scan", "CountUnigrams", "WriteCard"} <= set(names)


def test_a_notebook_needs_nothing_more_and_gives_steps_the_same_names(monkeypatch):
    """In IPython, Beam would name every step after its cell, and import pandas for it."""
    monkeypatch.setattr("apache_beam.utils.interactive_utils.is_in_ipython", lambda: True)
    monkeypatch.setitem(
        sys.modules, "apache_beam.runners.interactive.interactive_environment", None
    )

    def build(pipeline):
        _ = pipeline | "Some" >> beam.Create([1])
        assert "Some" in pipeline.applied_labels

    assert run(build, ["--direct_num_workers=1"]) == {}
