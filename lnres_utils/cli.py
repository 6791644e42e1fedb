"""The command ``lnres``: what this package does, from the command line."""

import difflib
import importlib
import inspect
import json
import os
import sys
from pathlib import Path

import click

from lnres_utils.grading.command import grade
from lnres_utils.markup import flat, one_line
from lnres_utils.writing import write_whole

DTYPES = ("float64", "float32", "float16", "bfloat16")
BAD_USE = 2  # exit code; click's own for options that it cannot read
LONGEST = 300  # characters of an error that is not ours


class OneLine(click.Group):
    """A group whose errors are one line on stderr, click's own about options included."""

    def main(self, *args, standalone_mode=True, **extra):
        try:
            status = super().main(*args, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            click.echo(f"lnres: {flat(error.format_message())}", err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("lnres: interrupted", err=True)
            sys.exit(130)  # as shells count a Ctrl-C
        except (Exception, SystemExit) as error:  # 1 would say that problems were found
            click.echo(f"lnres: {_raised(error)}", err=True)
            sys.exit(BAD_USE)
        sys.exit(status if isinstance(status, int) else 0)


@click.group(cls=OneLine, context_settings={"help_option_names": ["-h", "--help"]})
def main():
    """Tools of the course on layer normalization and residual connections."""


main.add_command(grade)


def _fail(message):
    raise click.UsageError(message)


def _raised(error):
    return one_line(error, LONGEST)


def _shape(context, option, value):
    try:
        shape = tuple(int(size) for size in value.split(","))
    except ValueError:
        _fail(f"--shape is {value!r}; whole numbers with commas were expected, such as 4,16,32")
    if min(shape) < 1:
        _fail(f"--shape is {value!r}; each size must be at least 1")
    return shape


def _object(context, option, value):
    try:
        given = json.loads(value)
    except json.JSONDecodeError as error:
        _fail(f"{option.opts[0]} is not JSON: {error}; expected is an object such as "
              """'{"d_model": 32}'""")
    if not isinstance(given, dict):
        _fail(f"{option.opts[0]} is {value}; a JSON object was expected, such as "
              """'{"d_model": 32}'""")
    return given


def _writable(context, option, value):
    """A path to write to, so that a long audit does not end in an error about it."""
    if value is None:
        return None
    path = Path(value).resolve()  # behind a link, so that this is kept
    if path.is_dir() or not _may_be_written(path):
        _fail(f"{option.opts[0]} is {value!r}; a file in a folder that exists and can be written "
              "to was expected")
    return path


def _may_be_written(path):
    """Whether the file, the folder it is made in, or the pipe or device, takes what is written."""
    if path.exists() and not path.is_file():
        return os.access(path, os.W_OK)
    is_protected = path.exists() and not (path.stat().st_mode & 0o222 and os.access(path, os.W_OK))
    return os.access(path.parent, os.W_OK) and not is_protected


@main.command()
@click.argument("target", metavar="PACKAGE.MODULE:NAME")
@click.option("--shape", required=True, callback=_shape, metavar="4,16,32",
              help="Sizes of the input; best all different and more than 1.")
@click.option("--axes", default="BTD", show_default=True,
              help="A letter an axis: B examples, T, H and W positions, C or D features.")
@click.option("--kwargs", default="{}", callback=_object, metavar="JSON",
              help="What the class, or the factory, is called with.")
@click.option("--call-kwargs", default="{}", callback=_object, metavar="JSON",
              help="What the module is called with beside its input; lists become tensors.")
@click.option("--factory", is_flag=True,
              help="NAME is a function that returns the module; without, a function is audited.")
@click.option("--causal/--not-causal", default=None,
              help="With --causal a position that sees a later one is a problem.")
@click.option("--padded", is_flag=True, default=None,
              help="Inputs get padded: padding that moves the real positions is a problem.")
@click.option("--dtype", type=click.Choice(DTYPES), default="float32", show_default=True,
              help="Of the parameters and of the input.")
@click.option("--integers", type=click.IntRange(min=2), metavar="N",
              help="The input holds whole numbers from 0 to N - 1, such as tokens.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
              help="Of the weights, the input and the audit.")
@click.option("--checks", metavar="A,B", help="Only these checks. Default: all.")
@click.option("--strict", is_flag=True,
              help="End with exit code 1 also when a check cannot tell.")
@click.option("--html", callback=_writable, metavar="FILE", help="Write the report as a page.")
@click.option("--json", "json_file", callback=_writable, metavar="FILE",
              help="Write the report as JSON.")
@click.pass_context
def audit(context, target, shape, axes, kwargs, call_kwargs, factory, causal, padded, dtype,
          integers, seed, checks, strict, html, json_file):
    """Run the practical checks on a module and print the report.

    NAME is a class of modules, a module, or a function of tensors; PACKAGE.MODULE is looked for in
    the current folder, too. The weights and the input are random.

    \b
    Example:
      lnres audit torch.nn:TransformerEncoderLayer --shape 4,16,32 --causal \\
        --kwargs '{"d_model": 32, "nhead": 4, "batch_first": true}'

    Exit code: 0 no problem found, 1 problems, 2 bad use. What a check cannot tell counts as no
    problem, and with --strict as one.
    """
    import torch

    if html and html == json_file:
        _fail(f"--html and --json are both {str(html)!r}; two files were expected")
    torch.manual_seed(seed)
    precision = getattr(torch, dtype)
    module = _module(_found(target), target, kwargs, factory)
    if isinstance(module, torch.nn.Module):
        module.to(precision)
    try:
        x = (torch.randn(shape, dtype=torch.float64).to(precision) if integers is None
             else torch.randint(integers, shape))
    except (RuntimeError, MemoryError):
        _fail(f"--shape is {','.join(map(str, shape))}; there is no memory for so many numbers")
    names = None if checks is None else [name.strip() for name in checks.split(",")]
    report = _audited(module, x, names, call_kwargs,
                      {"axes": axes, "causal": causal, "padded": padded, "seed": seed})
    _print(report.text)
    page = (f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>Audit of {target}</title>\n{report._repr_html_()}\n</html>\n")
    data = json.dumps(report.to_dict(), indent=2) + "\n"
    for path, text in ((html, page), (json_file, data)):
        if path:
            _write(path, text)
    open_questions = strict and any(each.verdict == "cannot tell" for each in report.findings)
    context.exit(1 if report.problems or open_questions else 0)


def _found(target):
    """The object that ``package.module:name`` names."""
    name, colon, attribute = target.partition(":")
    if not (name and colon and attribute):
        _fail(f"{target!r} names nothing; package.module:Class was expected, such as "
              "torch.nn:LayerNorm")
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        _fail(f"{name!r} cannot be imported: {_raised(error)}")
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            near = difflib.get_close_matches(part, dir(found), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            _fail(f"{name!r} has nothing named {attribute!r}{hint}")
        except Exception as error:  # what is loaded only when it is asked for
            _fail(f"{target!r} cannot be imported: {_raised(error)}")
    return found


def _module(found, target, kwargs, factory):
    """What is audited: an instance of the class, what the factory returns, or the thing itself."""
    import torch

    if inspect.isclass(found) or factory:
        if not callable(found):
            _fail(f"{target} is {type(found).__name__}; --factory expects a function")
        try:
            module = found(**kwargs)
        except (Exception, SystemExit) as error:
            _fail(f"{target} with --kwargs {json.dumps(kwargs)} raised {_raised(error)}")
    else:
        module = found
        if kwargs:
            _fail(f"--kwargs go to a class or, with --factory, to a function that returns a "
                  f"module; {target} is neither. Did you mean --factory or --call-kwargs?")
    if not isinstance(module, torch.nn.Module) and not callable(module):
        _fail(f"{target} is {type(module).__name__}; a class of modules or a function of tensors "
              "was expected")
    return module


def _audited(module, x, checks, call_kwargs, settings):
    """The report, with a bar for somebody who waits at a terminal."""
    import torch
    from tqdm import tqdm

    from lnres_utils.auditing.auditing import watched_audit
    from lnres_utils.auditing.subject import Subject

    def watch(names):
        return tqdm(names, delay=2, leave=False, disable=not sys.stderr.isatty())

    for name, value in call_kwargs.items():
        try:
            call_kwargs[name] = torch.tensor(value) if isinstance(value, list) else value
        except (TypeError, ValueError) as error:
            _fail(f"--call-kwargs: {name!r} is no tensor: {error}")
    try:
        return watched_audit(watch, Subject(module, x, kwargs=call_kwargs, **settings), checks)
    except (TypeError, ValueError) as error:
        _fail(error)


def _print(text):
    """Print; whoever reads may stop before the end, as ``head`` does."""
    try:
        click.echo(text)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # for the rest of it, when Python ends
        os.close(nowhere)


def _write(path, text):
    """Write a file whole or not at all; what is there and is no file, such as a pipe, is kept."""
    if path.exists() and not path.is_file():
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            _fail(f"{str(path)!r} cannot be written: {_raised(error)}")
        return
    try:
        write_whole(path, [text.encode()])
    except OSError as error:
        _fail(f"{str(path)!r} cannot be written: {_raised(error)}")


if __name__ == "__main__":
    main()
