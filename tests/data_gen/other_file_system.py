"""Something that only Beam reaches."""

import os

from apache_beam.io.localfilesystem import LocalFileSystem


class OtherFileSystem(LocalFileSystem):
    """`other://NAME` is a file of the folder `root` here."""

    root = None

    @classmethod
    def scheme(cls):
        return "other"

    def join(self, basepath, *paths):
        return "/".join([basepath, *paths])

    def split(self, path):
        return tuple(path.rsplit("/", 1))

    def _here(self, path):
        return str(self.root / path.removeprefix("other://"))

    def match(self, patterns, limits=None):
        matches = super().match([self._here(pattern) for pattern in patterns], limits)
        for result in matches:
            for metadata in result.metadata_list:
                metadata.path = "other://" + os.path.relpath(metadata.path, self.root)
        return matches

    def create(self, path, *arguments, **options):
        os.makedirs(os.path.dirname(self._here(path)), exist_ok=True)
        return super().create(self._here(path), *arguments, **options)

    def open(self, path, *arguments, **options):
        return super().open(self._here(path), *arguments, **options)

    def exists(self, path):
        return super().exists(self._here(path))

    def checksum(self, path):
        return super().checksum(self._here(path))  # the size

    def rename(self, sources, targets):
        super().rename([*map(self._here, sources)], [*map(self._here, targets)])

    def delete(self, paths):
        for path in paths:
            os.unlink(self._here(path))
