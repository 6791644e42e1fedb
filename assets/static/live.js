// Live cells: a code cell tagged `live` can be run and edited in the page, with NumPy, by a Python
// that runs in the browser (Pyodide). Nothing is downloaded before the first Run. The parts:
// live-editor.js, live-engine.js with live-worker.mjs, live-output.js.
//
// Cells tagged `setup` are run first, then the live cells above whose text has not run yet: so any
// cell can be the first one somebody runs, and an edited cell counts in the ones below it.
(() => {
  "use strict";

  const CDN = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/";
  const { Editor, Engine, Output } = window.liveCells;
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  let engine = null; // the Python of this page, once it has been asked for
  let active = null; // how to end the Run that is being carried out
  const cells = []; // setup cells first, then live ones, in page order

  const source = () => new URL(window.LIVE_PYODIDE || CDN, root);

  function dropEngine() {
    if (engine) engine.stop();
    engine = null;
    for (const cell of cells) cell.ran = null;
  }

  class Cell {
    constructor(element, live) {
      this.input = element.querySelector(".cell_input");
      this.original = this.input.querySelector("pre").textContent.replace(/\n$/, "");
      this.ran = null; // the text that ran last in the present Python
      // Checks and scratch cells may fail; answers may, too, but the cells below need them.
      this.isCheck = element.classList.contains("tag_raises-exception") &&
        !element.classList.contains("tag_answer");
      if (live) this.addControls(element);
    }

    get code() {
      return this.editor ? this.editor.text : this.original;
    }

    addControls(element) {
      const number = cells.filter((cell) => cell.run).length + 1;
      this.run = make("button", { type: "button", class: "live-run" }, "Run");
      this.edit = make("button", { type: "button", class: "live-edit" }, "Edit");
      this.stop = make("button", { type: "button", class: "live-stop", hidden: "" }, "Stop");
      this.bar = make("div", { class: "live-bar" }, this.run, this.edit, this.stop);
      this.state = make("p", { class: "live-state", role: "status" });
      this.editor = new Editor(number, this.original, { make, onRun: () => start(this) });
      this.output = new Output(element, root, make);
      this.input.after(make("div", { class: "live" },
        this.editor.element, this.bar, this.state, this.output.element));
      this.run.addEventListener("click", () => start(this));
      this.stop.addEventListener("click", () => active && active.stop());
      this.edit.addEventListener("click", () => this.toggleEditor());
      if (this.editor.restore()) {
        this.showEditor();
        this.say("This is your version from before. Reset brings back the book's.");
      }
    }

    toggleEditor() {
      if (this.editor.isOpen) {
        this.editor.reset();
        this.output.clear();
        this.output.fold(false);
        this.say("");
      } else {
        this.editor.open();
        this.editor.area.focus({ preventScroll: true });
      }
      this.showEditor();
    }

    showEditor() {
      this.input.hidden = this.editor.isOpen;
      this.edit.textContent = this.editor.isOpen ? "Reset" : "Edit";
    }

    say(text) {
      this.state.textContent = text;
    }

    /** Tell how a run went, above what it showed. */
    conclude(outcome) {
      if (outcome === "good") {
        this.say(this.output.isEmpty ? "Ran without output." : "Output of your run:");
      } else {
        this.say(outcome === "check"
          ? "The check has not passed. Its report:" : "Your run ended with an error:");
      }
      this.output.fold(true);
    }
  }

  async function start(cell) {
    if (active) {
      cell.say("Another cell is running. Stop it first, or wait.");
      return;
    }
    if (location.protocol === "file:") {
      cell.say("A page opened from a file cannot run Python. In the course's folder, " +
        "type `make serve` and open the address it prints.");
      return;
    }
    let stopped = false;
    const stopping = new Promise((resolve) => {
      active = { stop: () => { stopped = true; resolve(); } };
    });
    cell.stop.hidden = false;
    cell.output.clear();
    cell.say("Running…");
    try {
      await Promise.race([stopping, work(cell, () => stopped)]);
    } catch (error) {
      dropEngine();
      cell.say(`Python could not run: ${error.message}. It comes from ${source().host}.`);
    }
    if (stopped) {
      dropEngine();
      cell.say("Stopped. What the cells had computed is lost; the next Run starts Python afresh.");
    }
    if (document.activeElement === cell.stop) cell.run.focus();
    cell.stop.hidden = true;
    active = null;
  }

  async function work(cell, stopped) {
    if (!engine) {
      cell.say(`Starting Python from ${source().host}…`);
      engine = new Engine(source(), root);
    }
    await engine.ready;
    removeNotes();
    for (const above of cells) {
      if (above === cell) break;
      if (above.isCheck || above.ran === above.code) continue;
      cell.say("Running the cells above…");
      const code = above.code;
      let problem = "";
      const outcome = await engine.execute(code, (type, text) => {
        if (type === "error") problem = text;
      });
      if (stopped()) return;
      if (outcome === "error") {
        cell.output.receive("error", problem);
        cell.say("A cell above this one failed, so this one was not run.");
        return;
      }
      above.ran = code;
    }
    cell.say("Running…");
    const code = cell.code;
    const outcome = await engine.execute(code, (type, text) =>
      stopped() || cell.output.receive(type, text));
    if (stopped()) return;
    cell.ran = outcome === "error" ? null : code;
    cell.conclude(outcome);
  }

  // What the first Run downloads stands under the first live cell; the other Run buttons tell it to
  // who asks them.
  function addNotes() {
    const [first, ...others] = cells.filter((cell) => cell.run);
    if (!first) return;
    const download = `First Run: downloads Python (9 MB) from ${source().host}.`;
    first.bar.append(make("span", { class: "live-note", id: "live-note" },
      `${download} It runs in this page; what you type stays here.`));
    for (const { run } of others) run.title = download;
    for (const { run } of [first, ...others]) run.setAttribute("aria-describedby", "live-note");
  }

  function removeNotes() {
    document.getElementById("live-note")?.remove();
    for (const { run } of cells.filter((cell) => cell.run)) {
      run.removeAttribute("title");
      run.removeAttribute("aria-describedby");
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const element of document.querySelectorAll(".cell.tag_setup:not(.tag_live)"))
      cells.push(new Cell(element, false));
    for (const element of document.querySelectorAll(".cell.tag_live"))
      cells.push(new Cell(element, true));
    addNotes();
  });
})();
