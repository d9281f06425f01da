"""A Hugging Face hub on the loopback, with the routes for fetching and pushing a model."""

import base64
import contextlib
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import yaml

MODEL = r"/api/models/(?P<repo>[^/]+/[^/]+)"


class LocalHub:
    """Holds repositories in memory. `requests` are the (method, path) of all that was asked.

    Attributes:
        repos: name -> {revision -> {path -> bytes}}; a commit is the hash of its files.
        gated: the names that ask for the token "hf_known".
        private: the names that were made private.
    """

    def __init__(self):
        self.repos = {}
        self.gated = set()
        self.private = set()
        self.requests = []
        self.objects = {}  # what LFS was sent, by hash
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    def add(self, repo, folder, *, revision="main"):
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        self.repos.setdefault(repo, {})[revision] = files

    def fetched(self):
        """The names of the files that were downloaded."""
        return sorted(
            path.rpartition("/")[2] for method, path in self.requests if "/resolve/" in path
        )

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def files(self, repo, revision):
        """(commit, files) of a revision, which may be a commit; None if there is none."""
        for name, files in self.repos[repo].items():
            if revision in (name, commit_of(files)):
                return commit_of(files), files
        return None


def commit_of(files):
    said = "".join(f"{name} {_sha1(content)}\n" for name, content in sorted(files.items()))
    return hashlib.sha1(said.encode()).hexdigest()


def _sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _sha256(content):
    return hashlib.sha256(content).hexdigest()


def _handler(hub):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_GET(self):
            self._answer(_GET)

        def do_HEAD(self):
            self._answer(_GET)

        def do_POST(self):
            self._answer(_POST)

        def do_PUT(self):
            self._answer(_PUT)

        def _answer(self, routes):
            path = unquote(urlsplit(self.path).path)
            hub.requests.append((self.command, path))
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            for pattern, route in routes:
                match = re.fullmatch(pattern, path)
                if match:
                    trouble = _trouble(hub, match.groupdict(), token, writes=routes is _POST)
                    return self._send(*(trouble or route(hub, body, **match.groupdict())))
            self._send(404, b"no such route")

        def _send(self, status, content=b"", headers=None):
            if not isinstance(content, bytes):
                content = json.dumps(content).encode()
                headers = {"Content-Type": "application/json", **(headers or {})}
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                # A client on a busy machine may have given up.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.wfile.write(content)

    return Handler


def _trouble(hub, fields, token, *, writes):
    repo = fields.get("repo")
    if writes and token != "hf_known":
        return 401, {"error": "who are you?"}
    if repo is None:
        return None
    if repo not in hub.repos:
        return 404, {"error": "not found"}, {"X-Error-Code": "RepoNotFound"}
    if repo in hub.gated and token != "hf_known":
        return 403, {"error": "gated"}, {"X-Error-Code": "GatedRepo"}
    if "revision" in fields and hub.files(repo, fields["revision"]) is None:
        return 404, {"error": "no revision"}, {"X-Error-Code": "RevisionNotFound"}
    return None


def _info(hub, body, *, repo, revision):
    commit, files = hub.files(repo, revision)
    siblings = [{"rfilename": name} for name in sorted(files)]
    answer = {"id": repo, "modelId": repo, "sha": commit, "siblings": siblings, "tags": []}
    return 200, {**answer, "private": repo in hub.private}


def _tree(hub, body, *, repo, revision):
    _, files = hub.files(repo, revision)
    return 200, [
        {"type": "file", "path": name, "size": len(content), "oid": _sha1(content)}
        for name, content in sorted(files.items())
    ]


def _resolve(hub, body, *, repo, revision, path):
    commit, files = hub.files(repo, revision)
    if path not in files:
        return 404, {"error": "no file"}, {"X-Error-Code": "EntryNotFound"}
    headers = {"ETag": f'"{_sha1(files[path])}"', "X-Repo-Commit": commit}
    return 200, files[path], headers


def _create(hub, body):
    asked = json.loads(body)
    repo = f"{asked.get('organization') or 'somebody'}/{asked['name']}"
    status = 409 if repo in hub.repos else 200
    if status == 200 and (asked.get("private") or asked.get("visibility") == "private"):
        hub.private.add(repo)
    hub.repos.setdefault(repo, {"main": {}})
    return status, {"url": f"{hub.endpoint}/{repo}", "name": repo}


def _validate(hub, body):
    """The hub's answer to a card's metadata, as far as its form is concerned."""
    metadata = json.loads(body)["content"].split("---\n")[1]
    try:
        ok = isinstance(yaml.safe_load(metadata), dict)
    except yaml.YAMLError:
        ok = False
    errors = [] if ok else [{"message": "this is no YAML"}]
    return (200 if ok else 400), {"warnings": [], "errors": errors}


def _branch(hub, body, *, repo, branch):
    hub.repos[repo].setdefault(branch, dict(hub.repos[repo]["main"]))
    return 200, b""


def _preupload(hub, body, *, repo, revision):
    return 200, {
        "files": [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(".safetensors") else "regular",
                "shouldIgnore": False,
            }
            for file in json.loads(body)["files"]
        ]
    }


def _batch(hub, body, *, repo):
    objects = []
    for wanted in json.loads(body)["objects"]:
        upload = {"href": f"{hub.endpoint}/upload/{wanted['oid']}"}
        objects.append({**wanted, "actions": {"upload": upload}})
    return 200, {"transfer": "basic", "objects": objects}


def _upload(hub, body, *, oid):
    assert _sha256(body) == oid
    hub.objects[oid] = body
    return 200, b""


def _commit(hub, body, *, repo, revision):
    files = hub.repos[repo][revision]
    for line in map(json.loads, body.splitlines()):
        value = line["value"]
        if line["key"] == "file":
            assert value["encoding"] == "base64"
            files[value["path"]] = base64.b64decode(value["content"])
        elif line["key"] == "lfsFile":
            files[value["path"]] = hub.objects[value["oid"]]
        elif line["key"] == "deletedFile":
            del files[value["path"]]
    commit = commit_of(files)
    return 200, {"commitUrl": f"{hub.endpoint}/{repo}/commit/{commit}", "commitOid": commit}


_GET = [
    (rf"{MODEL}/revision/(?P<revision>[^/]+)", _info),
    (MODEL, lambda hub, body, *, repo: _info(hub, body, repo=repo, revision="main")),
    (rf"{MODEL}/tree/(?P<revision>[^/]+)", _tree),
    (r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)", _resolve),
]
_POST = [
    (r"/api/repos/create", _create),
    (r"/api/validate-yaml", _validate),
    (rf"{MODEL}/branch/(?P<branch>[^/]+)", _branch),
    (rf"{MODEL}/preupload/(?P<revision>[^/]+)", _preupload),
    (r"/(?P<repo>[^/]+/[^/]+)\.git/info/lfs/objects/batch", _batch),
    (rf"{MODEL}/commit/(?P<revision>[^/]+)", _commit),
]
_PUT = [(r"/upload/(?P<oid>[0-9a-f]+)", _upload)]
