"""What every test shares: where the book is, and how nbval runs its notebooks."""

import os
from pathlib import Path

import pytest

from agop.book.execute import kernel_environment

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """Give nbval an absolute path, and kernels what the runner gives them."""
    config.option.nbval_sanitize_with = str(ROOT / "tests" / "sanitize.cfg")
    for name, value in kernel_environment(ROOT, "ci").items():
        os.environ[name] = value


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the folder of this book."""
    return ROOT
