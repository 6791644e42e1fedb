"""The command ``lnres audit``: what it prints, how it ends, and what it says about bad input."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch import nn

from lnres_utils.auditing import CHECKS, Subject
from lnres_utils.auditing.auditing import watched_audit
from lnres_utils.cli import main

LAYER_NORM = ["torch.nn:LayerNorm", "--shape", "3,4,8", "--kwargs", '{"normalized_shape": 8}']
ENCODER = ["torch.nn:TransformerEncoderLayer", "--shape", "2,5,8", "--kwargs",
           '{"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0, "batch_first": true}']
QUICK = ["--checks", "examples,causality"]
OWN = '''
import torch
from torch import nn

class Fails(nn.Module):
    def __init__(self, width):
        raise RuntimeError(f"no width\\nis {width}")

def over_batch(x):
    return x - x.mean(0)

def coarse(x):
    return (x + x.mean(1, keepdim=True) / 300).bfloat16().to(x.dtype)

def scaled(x, factor, mask=None):
    return x * factor if mask is None else x * factor * mask

def grown(x, seed, checks):
    return x * seed * checks

def make(width=8):
    return nn.LayerNorm(width)

def makes_nothing():
    return 3

class Leaves(nn.Module):
    def __init__(self):
        raise SystemExit(0)

def leaves(x):
    raise SystemExit(0)

def pooled(x):
    return x.mean(1)

layer = nn.RMSNorm(8)
number = 7
'''


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Each command runs in a folder that holds a module of the user's own."""
    (tmp_path / "their_layers.py").write_text(OWN)
    (tmp_path / "kept.html").write_text("kept")
    (tmp_path / "kept.html").chmod(0o400)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("their_layers", None)


def run(*arguments):
    return CliRunner().invoke(main, ["audit", *arguments])


def test_a_class_without_a_problem():
    result = run(*LAYER_NORM, *QUICK)
    assert result.exit_code == 0, result.output
    assert "LayerNorm" in result.stdout
    assert result.stderr == ""


def test_all_checks_are_run_by_default():
    result = run(*LAYER_NORM)
    assert result.exit_code == 0, result.output
    assert all(check in result.stdout for check in CHECKS)


def test_a_problem_ends_with_one():
    assert run(*ENCODER, *QUICK, "--causal").exit_code == 1
    assert run(*ENCODER, *QUICK, "--not-causal").exit_code == 0
    assert run(*ENCODER, *QUICK).exit_code == 0


def test_what_a_check_cannot_tell_is_a_failure_only_with_strict():
    leak = ["their_layers:coarse", "--shape", "3,4,8", "--causal", "--checks", "causality"]
    result = run(*leak)
    assert (result.exit_code, "cannot tell" in result.stdout) == (0, True), result.output
    strict = run(*leak, "--strict")
    assert (strict.exit_code, strict.stdout) == (1, result.stdout)
    assert run(*LAYER_NORM, *QUICK, "--strict").exit_code == 0
    assert run(*ENCODER, *QUICK, "--causal", "--strict").exit_code == 1


def test_call_arguments_reach_the_module():
    mask = [[j > i for j in range(5)] for i in range(5)]
    result = run(*ENCODER, *QUICK, "--causal", "--call-kwargs", json.dumps({"src_mask": mask}))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("target, settings, code", [
    ("their_layers:over_batch", [], 1),
    ("their_layers:scaled", ["--call-kwargs", '{"factor": 2}'], 0),
    ("their_layers:grown", ["--call-kwargs", '{"seed": 2, "checks": 3}'], 0),
    ("their_layers:make", ["--factory"], 0),
    ("their_layers:make", ["--factory", "--kwargs", '{"width": 8}'], 0),
    ("their_layers:layer", [], 0),
])
def test_functions_factories_and_modules(target, settings, code):
    result = run(target, "--shape", "3,4,8", *QUICK, *settings)
    assert result.exit_code == code, result.output


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_parameters_and_input_have_the_dtype(dtype):
    result = run(*LAYER_NORM, *QUICK, "--dtype", dtype, "--json", "out.json")
    assert result.exit_code == 0, result.output
    assert json.loads(Path("out.json").read_text())["facts"]["dtype"] == dtype


def test_axes_and_seed():
    norm = ["torch.nn:GroupNorm", "--kwargs", '{"num_groups": 2, "num_channels": 8}',
            "--shape", "3,8,4,5", "--axes", "BCHW", "--checks", "tokens"]
    result = run(*norm, "--seed", "1")
    assert result.exit_code == 0, result.output
    assert result.stdout == run(*norm, "--seed", "1").stdout
    assert result.stdout != run(*norm, "--seed", "2").stdout


def test_files_are_written_whole(folder):
    result = run(*ENCODER, *QUICK, "--causal", "--html", "out.html", "--json", "out.json")
    assert result.exit_code == 1
    page, data = Path("out.html").read_text(), json.loads(Path("out.json").read_text())
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert "causality" in page and '<meta name="viewport"' in page
    assert [finding["check"] for finding in data["findings"]] == ["examples", "causality"]
    assert sorted(each.name for each in folder.iterdir() if each.is_file()) == [
        "kept.html", "out.html", "out.json", "their_layers.py"]


def test_a_link_is_kept_and_what_it_names_is_written(folder):
    (folder / "target.html").write_text("old")
    (folder / "link.html").symlink_to("target.html")
    assert run(*LAYER_NORM, *QUICK, "--html", "link.html").exit_code == 0
    assert (folder / "link.html").is_symlink()
    assert (folder / "target.html").read_text().startswith("<!doctype html>")


def test_a_pipe_is_written_to_and_kept(folder):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    assert run(*LAYER_NORM, *QUICK, "--json", "pipe").exit_code == 0
    reader.join(timeout=60)
    assert pipe.is_fifo()
    assert json.loads(read[0])["facts"]["dtype"] == "float32"


def test_models_of_tokens_get_integers():
    embedding = ["torch.nn:Embedding", "--shape", "3,5", "--axes", "BT", "--kwargs",
                 '{"num_embeddings": 11, "embedding_dim": 8}', *QUICK]
    result = run(*embedding, "--integers", "11", "--json", "out.json")
    assert result.exit_code == 0, result.output
    assert json.loads(Path("out.json").read_text())["facts"]["dtype"] == "int64"
    assert run(*embedding).exit_code == 2  # an embedding takes no fractions


def test_padded_makes_padding_that_counts_a_problem():
    pooled = ["their_layers:pooled", "--shape", "3,4,8", "--checks", "padding"]
    assert run(*pooled).exit_code == 0
    assert run(*pooled, "--padded").exit_code == 1


def test_an_error_of_our_own_is_one_line_and_no_verdict(monkeypatch):
    def fails(subject):
        raise ZeroDivisionError("of the check")

    monkeypatch.setitem(CHECKS, "examples", fails)
    result = run(*LAYER_NORM, *QUICK)
    assert result.exit_code == 2 and result.stdout == ""
    line, = result.stderr.splitlines()
    assert line.startswith("lnres: ") and "ZeroDivisionError: of the check" in line


BAD = [
    (["no.such:Thing", "--shape", "2,3,4"], "no.such"),
    (["torch.nn:NoSuchNorm", "--shape", "2,3,4"], "NoSuchNorm"),
    (["torch.nn:Layernorm", "--shape", "2,3,4"], "did you mean 'LayerNorm'?"),
    (["torch.nn", "--shape", "2,3,4"], "package.module:Class"),
    (["their_layers:number", "--shape", "2,3,4"], "int"),
    (["their_layers:makes_nothing", "--shape", "2,3,4", "--factory"], "int"),
    (["their_layers:number", "--shape", "2,3,4", "--factory"], "--factory"),
    (["their_layers:make", "--shape", "2,3,4", "--kwargs", '{"width": 4}'], "--factory"),
    (["their_layers:Fails", "--shape", "2,3,4", "--kwargs", '{"width": 4}'], "no width is 4"),
    ([*LAYER_NORM[:3], "--kwargs", '{"width": 8}'], "width"),
    (LAYER_NORM[:3], "normalized_shape"),
    ([*LAYER_NORM[:3], "--kwargs", "{width: 8}"], "JSON"),
    ([*LAYER_NORM[:3], "--kwargs", "[8]"], "JSON object"),
    ([*LAYER_NORM, "--call-kwargs", "8"], "JSON object"),
    ([*LAYER_NORM, "--call-kwargs", '{"axes": "BT"}'], "axes"),
    ([*LAYER_NORM, "--call-kwargs", '{"mask": [[1], [2, 3]]}'], "mask"),
    ([*LAYER_NORM, "--call-kwargs", '{"factor": 2}'], "factor"),
    (["their_layers:Leaves", "--shape", "3,4,8"], "SystemExit"),
    (["their_layers:leaves", "--shape", "3,4,8"], "SystemExit"),
    (["torch.nn:Identity", "--shape", "99999999,99999,16"], "no memory"),
    ([*LAYER_NORM, "--seed", "99999999999999999999999"], "99999999999999999999999"),
    ([*LAYER_NORM, "--html", "./out.json"], "two files"),
    ([*LAYER_NORM, "--html", "kept.html"], "kept.html"),
    ([*LAYER_NORM, "--integers", "1"], "--integers"),
    (["torch.nn:LayerNorm", "--shape", "3,4,eight"], "3,4,eight"),
    (["torch.nn:LayerNorm", "--shape", "3,0,8"], "3,0,8"),
    (["torch.nn:LayerNorm"], "--shape"),
    (["torch.nn:LayerNorm", *LAYER_NORM[3:], "--shape", "3,4,9"], "(3, 4, 9)"),
    ([*LAYER_NORM, "--axes", "BT"], "BT"),
    ([*LAYER_NORM, "--axes", "XYZ"], "XYZ"),
    ([*LAYER_NORM, "--checks", "causality,magic"], "magic"),
    ([*LAYER_NORM, "--dtype", "int8"], "int8"),
    ([*LAYER_NORM, "--html", "no/such/folder.html"], "no/such/folder.html"),
    ([*LAYER_NORM, "--no-such-option"], "--no-such-option"),
]


@pytest.mark.parametrize("arguments, named", BAD, ids=[named for _, named in BAD])
def test_bad_use_is_one_line_that_names_it(arguments, named, folder):
    result = run(*arguments, "--json", "out.json")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    line, = result.stderr.splitlines()
    assert line.startswith("lnres: ") and named in line
    assert not (folder / "out.json").exists()


def test_a_bar_goes_through_the_checks():
    seen = []

    def watch(names):
        for name in names:
            seen.append(name)
            yield name

    subject = Subject(nn.LayerNorm(8), torch.randn(3, 4, 8))
    report = watched_audit(watch, subject, ["tokens", "scale"])
    assert seen == [finding.check for finding in report.findings] == ["tokens", "scale"]


def test_help_has_an_example_that_runs():
    text = run("--help").stdout
    example = text.split("Example:")[1].split("Exit code")[0].replace("\\\n", " ")
    program, command, *arguments = shlex.split(example)
    assert (program, command) == ("lnres", "audit")
    result = run(*arguments, "--checks", "causality")  # without a mask
    assert result.exit_code == 1 and "depend on later ones" in result.stdout, result.output
    assert "audit" in CliRunner().invoke(main, ["--help"]).stdout


def test_the_installed_command_in_a_process_of_its_own(folder):
    command = shutil.which("lnres", path=os.path.dirname(sys.executable))
    done = subprocess.run([command, "audit", "their_layers:over_batch", "--shape", "3,4,8", *QUICK],
                          capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1, done.stderr
    assert "over_batch" in done.stdout
    assert done.stderr == ""  # no bar where nobody watches
    done = subprocess.run([command, "audit", "their_layers:nothing", "--shape", "3"],
                          capture_output=True, text=True, cwd=folder)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_reader_that_stops_is_no_error(folder):
    command = shutil.which("lnres", path=os.path.dirname(sys.executable))
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = subprocess.run([command, "audit", *LAYER_NORM, *QUICK, "--json", "out.json"],
                              stdout=pipe, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "out.json").exists()
