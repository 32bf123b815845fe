"""What ``make`` says when a step fails."""

import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")


@pytest.fixture
def project(tmp_path, root):
    """A folder with the Makefile and an environment whose set-up is done."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(root / name, tmp_path)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "pip", "agop"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> calls\n')
        (programs / name).chmod(0o755)
    return tmp_path


def make(project, *arguments):
    return subprocess.run(
        ["make", *arguments], cwd=project, capture_output=True, text=True, check=False
    )


def calls(project):
    return (project / "calls").read_text().splitlines()


def test_set_up_happens_once(project):
    assert make(project, "book").returncode == 0
    first = [line for line in calls(project) if line.startswith("pip")]
    assert len(first) == 3
    (project / "calls").unlink()
    assert make(project, "book").returncode == 0
    assert calls(project) == ["agop book run --scale ci", "agop book render --runs ci"]


def test_a_changed_requirement_is_installed(project):
    make(project, "book")
    (project / "calls").unlink()
    (project / "pyproject.toml").touch()
    make(project, "book")
    assert any(line.startswith("pip install") for line in calls(project))


def test_a_failing_step_is_named(project):
    make(project, "book")
    (project / ".venv/bin/agop").write_text("#!/bin/sh\nexit 3\n")
    failed = make(project, "book")
    assert failed.returncode != 0
    assert "make: the step 'execute the chapters at ci scale' failed" in failed.stderr
    assert "render" not in failed.stdout


def test_the_site_needs_no_torch(project):
    assert make(project, "site").returncode == 0
    assert calls(project)[-1] == "agop book render"
    assert not any("-e .[book" in line for line in calls(project))


def test_arguments_reach_the_runner(project):
    make(project, "publish", "SCALE=laptop", "CH=one")
    assert calls(project)[-1] == "agop book publish --scale laptop one"
    make(project, "run", "SCALE=paper", "CH=one two")
    assert calls(project)[-1] == "agop book run --scale paper one two"
