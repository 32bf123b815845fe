import json
import subprocess
import sys

import pytest

from agop.datasets import load


def test_an_unknown_name_suggests_another():
    with pytest.raises(ValueError, match="'uci/abalon'; there is uci/abalone"):
        load("uci/abalon")


def test_options_reach_the_loader():
    with pytest.raises(ValueError, match="scaling is 'none'"):
        load("uci/abalone", scaling="none")


def test_importing_the_package_loads_no_heavy_library():
    code = "import agop.datasets, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    heavy = {"torch", "torchvision", "sklearn", "scipy", "PIL", "matplotlib"}
    assert heavy.isdisjoint(json.loads(done.stdout))


def test_provenance_is_json():
    record = load("digits").provenance.to_dict()
    assert json.loads(json.dumps(record)) == record
