// Live cells: a code cell tagged `live` can be run and edited in the page, with NumPy, by a Python
// that runs in the browser (Pyodide, in live-worker.mjs). Nothing is downloaded before the first
// Run. The stored output stays where it is; the reader's own appears under the buttons.
//
// Cells tagged `setup` are run first, then the live cells above whose text has not run yet: so any
// cell can be the first one somebody runs, and an edited cell counts in the ones below it.
(() => {
  "use strict";

  const CDN = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/";
  const MAX_TEXT = 20000; // characters shown of one run
  const here = document.currentScript.src;
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  let engine = null; // {worker, ready}: a promise that Python has started
  let active = null; // the cell whose Run is being carried out, and how to end it
  let serial = 0;
  const cells = []; // setup cells first, then live ones, in page order

  const source = () => new URL(window.LIVE_PYODIDE || CDN, root);

  function startEngine() {
    const worker = new Worker(new URL("live-worker.mjs", here), { type: "module" });
    const ready = new Promise((resolve, reject) => {
      worker.onerror = () => reject(new Error("the browser could not start it"));
      worker.onmessage = ({ data }) =>
        data.type === "ready" ? resolve() : reject(new Error(data.text));
    });
    worker.postMessage({
      type: "start",
      source: source().href,
      archive: new URL("lnres_utils.zip", root).href,
    });
    return { worker, ready };
  }

  function dropEngine() {
    if (engine) engine.worker.terminate();
    engine = null;
    for (const cell of cells) cell.ran = null;
  }

  // One run of some code; `receive` gets what it shows. Resolves to whether it went well.
  function execute(code, receive) {
    const id = ++serial;
    return new Promise((resolve, reject) => {
      engine.worker.onerror = (event) => reject(new Error(event.message || "Python has stopped"));
      engine.worker.onmessage = ({ data }) => {
        if (data.id !== id) return;
        if (data.type === "done") resolve(data.good);
        else receive(data.type, data.text);
      };
      engine.worker.postMessage({ type: "run", id, code });
    });
  }

  class Cell {
    constructor(element, live) {
      this.element = element;
      this.pre = element.querySelector(".cell_input pre");
      this.original = this.pre.textContent.replace(/\n$/, "");
      this.ran = null; // the text that ran last in the present Python
      this.isCheck = element.classList.contains("tag_raises-exception");
      if (live) this.addControls();
    }

    get code() {
      return this.editor && !this.editing.hidden ? this.editor.value : this.original;
    }

    addControls() {
      const number = cells.filter((cell) => cell.run).length + 1;
      this.run = make("button", { type: "button", class: "live-run" }, "Run");
      this.edit = make("button", { type: "button", class: "live-edit" }, "Edit");
      this.stop = make("button", { type: "button", class: "live-stop", hidden: "" }, "Stop");
      this.note = make("span", { class: "live-note" });
      this.editor = make("textarea", {
        id: `live-editor-${number}`, spellcheck: "false", autocapitalize: "off", wrap: "off",
      });
      this.editing = make("div", { class: "live-editing", hidden: "" },
        make("label", { for: this.editor.id },
          `Your version of live cell ${number} (Shift+Enter runs it)`),
        this.editor);
      this.state = make("p", { class: "live-state", role: "status" });
      this.output = make("div", { class: "live-output", role: "status" });
      const panel = make("div", { class: "live" }, this.editing,
        make("div", { class: "live-bar" }, this.run, this.edit, this.stop, this.note),
        this.state, this.output);
      this.element.querySelector(".cell_input").after(panel);
      this.run.addEventListener("click", () => start(this));
      this.stop.addEventListener("click", () => active && active.stop());
      this.edit.addEventListener("click", () => this.toggleEditor());
      this.editor.addEventListener("keydown", (event) => this.onKey(event));
      this.editor.addEventListener("input", () => this.fitEditor());
    }

    toggleEditor() {
      const open = this.editing.hidden;
      this.editing.hidden = !open;
      this.pre.closest(".cell_input").hidden = open;
      this.edit.textContent = open ? "Reset" : "Edit";
      if (!open) return;
      this.editor.value = this.original;
      this.fitEditor();
      this.editor.focus();
    }

    fitEditor() {
      this.editor.rows = Math.max(2, this.editor.value.split("\n").length);
    }

    // Tab keeps moving the focus; Enter keeps the indentation instead.
    onKey(event) {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      if (event.shiftKey) {
        start(this);
        return;
      }
      const { value, selectionStart, selectionEnd } = this.editor;
      const line = value.slice(0, selectionStart).split("\n").pop();
      const indent = line.match(/^ */)[0] + (line.trimEnd().endsWith(":") ? "    " : "");
      this.editor.setRangeText(`\n${indent}`, selectionStart, selectionEnd, "end");
      this.fitEditor();
    }

    say(text) {
      this.state.textContent = text;
    }

    receive(type, text) {
      if (type === "html") {
        const block = make("div", { class: "live-html" });
        block.innerHTML = text;
        // Reports link to notebooks, relative to the exercises: here these are pages.
        for (const link of block.querySelectorAll('a[href$=".ipynb"]')) {
          const path = link.getAttribute("href").replace(/^(\.\.\/)+/, "").replace(/ipynb$/, "html");
          link.href = new URL(path, root).href;
        }
        this.output.append(block);
        return;
      }
      const kind = type === "error" ? "live-error" : "live-text";
      let last = this.output.lastElementChild;
      if (!last || !last.classList.contains(kind)) {
        last = make("pre", { class: kind, tabindex: "0" });
        this.output.append(last);
      }
      const room = MAX_TEXT - last.textContent.length;
      if (room > 0) last.append(text.length > room ? `${text.slice(0, room)}\n…` : text);
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
    cell.output.replaceChildren();
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
      engine = startEngine();
    }
    await engine.ready;
    for (const other of cells) other.note && other.note.remove();
    for (const above of cells) {
      if (above === cell) break;
      if (above.isCheck || above.ran === above.code) continue;
      cell.say("Running the cells above…");
      const code = above.code;
      let problem = "";
      const good = await execute(code, (type, text) => { if (type === "error") problem = text; });
      if (stopped()) return;
      if (!good) {
        cell.receive("error", problem);
        cell.say("A cell above this one failed, so this one was not run.");
        return;
      }
      above.ran = code;
    }
    cell.say("Running…");
    const code = cell.code;
    const good = await execute(code, (type, text) => stopped() || cell.receive(type, text));
    if (stopped()) return;
    cell.ran = good ? code : null;
    // A failed check ends with an error too, but what it says is its report.
    const told = good || cell.output.querySelector(".live-html");
    cell.say(told ? "Output of your run:" : "Your run ended with an error:");
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const element of document.querySelectorAll(".cell.tag_setup:not(.tag_live)"))
      cells.push(new Cell(element, false));
    for (const element of document.querySelectorAll(".cell.tag_live"))
      cells.push(new Cell(element, true));
    const notes = cells.filter((cell) => cell.note).map((cell) => cell.note);
    for (const note of notes) {
      const download = `First Run: downloads Python (9 MB) from ${source().host}.`;
      note.textContent = note === notes[0]
        ? `${download} It runs in this page; what you type stays here.` : download;
    }
  });
})();
