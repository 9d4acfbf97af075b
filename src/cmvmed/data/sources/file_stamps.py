"""Whether files are the same as when they were opened: by size, time of change and inode."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self


class _Stamp(NamedTuple):
    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True)
class FileStamps:
    """What files looked like when they were opened; files that are not on this machine have no stamp."""

    stamps: tuple[tuple[str, _Stamp], ...] = ()

    @classmethod
    def of(cls, paths: Iterable[str | os.PathLike[str]]) -> Self:
        """The stamps of files on this machine."""
        return cls(tuple((os.fspath(path), _stamp(path)) for path in paths))

    @classmethod
    def below(cls, folder: str | os.PathLike[str]) -> Self:
        """The stamps of all files in a folder and its sub-folders."""
        return cls.of(file for file in sorted(Path(folder).rglob("*")) if file.is_file())

    def check(self) -> None:
        """Raise if a file was changed, replaced or deleted."""
        for path, before in self.stamps:
            try:
                now = _stamp(path)
            except FileNotFoundError:
                raise ValueError(f"{path} was deleted while it was being read; keep files until the end.") from None
            if now != before:
                raise ValueError(
                    f"{path} was changed while it was being read, so its rows may be mixed; "
                    "repeat this on files that do not change."
                )


def _stamp(path: str | os.PathLike[str]) -> _Stamp:
    status = os.stat(path)
    return _Stamp(status.st_size, status.st_mtime_ns, status.st_ino)
