"""One source of pins: constraints.txt; every way of installing takes it."""

import re
import tomllib

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def pins(root):
    lines = (root / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def requirements(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return [
        Requirement(text)
        for text in [*project["dependencies"], *extras["book"], *extras["dev"]]
    ]


def test_every_requirement_is_pinned_within_its_range(root):
    pinned = pins(root)
    for requirement in requirements(root):
        name = canonicalize_name(requirement.name)
        assert name in pinned, f"constraints.txt has no {name}; run make lock"
        assert requirement.specifier.contains(pinned[name]), requirement


def test_conda_takes_its_pins_from_the_same_file(root):
    environment = yaml.safe_load((root / "environment.yml").read_text())
    *conda, nested = environment["dependencies"]
    assert nested["pip"] == ["-c constraints.txt", "-e .[book,dev]"]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert conda == [f"python{project['requires-python']},<3.12", "pip"]


def test_make_installs_with_the_same_pins(root):
    makefile = (root / "Makefile").read_text()
    installs = re.findall(r"pip install[^&\n]*", makefile)
    bare = [line for line in installs if "-c constraints.txt" not in line]
    assert len(installs) >= 3
    assert all("--no-deps" in line for line in bare)


def test_what_the_book_must_not_outgrow(root):
    pinned = pins(root)
    assert pinned["jupyter-book"].startswith("1.")
    assert int(pinned["click"].split(".")[0]) < 9
