// The Python of a page. live.js starts this module worker at the first Run, and terminates it to
// stop a loop. Messages in: {type: "start", source, archive} once, then {type: "run", id, code}.
// Messages out: "ready", "failed", and for a run "text", "html" and "error", then "done" with an
// outcome: "good", "error", or "check" for a check that has shown a report and not passed.

const RUNNER = `
import ast, html, sys, traceback, types

sys.path.insert(0, "/course")

def _show(value):
    rich = getattr(value, "_repr_html_", None)
    rich = rich() if callable(rich) and not isinstance(value, type) else None
    if rich is not None:
        _send("html", rich)
    elif value is not None:
        print(repr(value))

# lnres_utils displays reports as in a notebook if it finds IPython; this much of it is enough.
_reported = False

def _display(*values):
    global _reported
    for value in values:
        _reported = _reported or type(value).__name__ == "Report"
        _show(value)

_shell = types.ModuleType("IPython")
_shell.display = types.ModuleType("IPython.display")
_shell.get_ipython = lambda: _shell
_shell.display.display = _display
sys.modules.update({"IPython": _shell, "IPython.display": _shell.display})

def _explain(error, code):
    own = getattr(error, "_render_traceback_", None)
    if own is not None:
        return chr(10).join(own())
    text = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, SyntaxError):
        return text
    text = text.splitlines()[0] if isinstance(error, KeyError) else text
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == "<cell>"]
    source = code.splitlines()
    where = [f"line {line}: {source[line - 1].strip()}" for line in lines if line <= len(source)]
    return chr(10).join([text, *where])

def _run(code, scope):
    global _reported
    _reported = False
    try:
        tree = ast.parse(code, "<cell>")
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, "<cell>", "exec"), scope)
        if last is not None:
            _show(eval(compile(last, "<cell>", "eval"), scope))
    except BaseException as error:
        sys.stdout.flush()
        if _reported and type(error).__name__ == "CheckFailed":
            return "check"
        _send("error", _explain(error, code))
        return "error"
    return "good"

_scope = {"__name__": "__main__"}
`;

let python;
let run;
let current;

const send = (type, text) => postMessage({ type, text, id: current });

async function start({ source, archive }) {
  const { loadPyodide } = await import(new URL("pyodide.mjs", source).href);
  python = await loadPyodide({ indexURL: source });
  await python.loadPackage("numpy", { messageCallback: () => {} });
  const response = await fetch(archive);
  if (!response.ok) throw new Error(`${archive}: ${response.status}`);
  python.unpackArchive(await response.arrayBuffer(), "zip", { extractDir: "/course" });
  // Text goes out line by line, so that a long loop shows what it prints while it runs.
  python.setStdout({ batched: (line) => send("text", `${line}\n`) });
  python.setStderr({ batched: (line) => send("text", `${line}\n`) });
  python.globals.set("_send", send);
  python.runPython(RUNNER);
  run = python.runPython("lambda code: _run(code, _scope)");
}

onmessage = async ({ data }) => {
  if (data.type === "start") {
    try {
      await start(data);
      postMessage({ type: "ready" });
    } catch (error) {
      postMessage({ type: "failed", text: String(error.message || error) });
    }
    return;
  }
  current = data.id;
  const outcome = run(data.code);
  python.runPython("import sys; sys.stdout.flush(); sys.stderr.flush()");
  postMessage({ type: "done", id: current, outcome });
};
