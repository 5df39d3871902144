import os

import pytest

from reports.files import atomic_bytes, atomic_text


@pytest.mark.parametrize(("kind", "part"), [(atomic_text, "half"), (atomic_bytes, b"half")])
def test_an_error_while_writing_leaves_the_old_file_and_no_other(tmp_path, kind, part):
    path = tmp_path / "report.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="stop"), kind(path) as stream:
        stream.write(part)
        raise RuntimeError("stop")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_whole_file_replaces_the_old_one_and_folders_are_made(tmp_path):
    path = tmp_path / "new" / "report.txt"
    for text in ("one", "two"):
        with atomic_text(path) as stream:
            stream.write(text)
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_device_is_written_to_and_stays_one(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_text(path) as stream:
        stream.write("through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert path.is_fifo()


def test_a_folder_is_no_file_to_write(tmp_path):
    with pytest.raises(IsADirectoryError, match=str(tmp_path)), atomic_text(tmp_path) as stream:
        stream.write("never")
    assert not list(tmp_path.iterdir())
