// What a live cell shows: the output of the reader's own run, and below it the one that is stored in
// the book, under a title of its own and folded after a run.
{
  const MAX_TEXT = 20000; // characters shown of one run

  /** Links of a report open a new tab: in this one they would end Python and what it holds. */
  function openApart(block) {
    for (const link of block.querySelectorAll("a[href]")) {
      link.target = "_blank";
      link.rel = "noopener";
      const note = document.createElement("span");
      note.className = "visually-hidden";
      note.textContent = " (opens in a new tab)";
      link.append(note);
    }
  }

  window.liveCells.Output = class {
    constructor(cell, root, make) {
      this.make = make;
      this.root = root;
      this.element = make("div", { class: "live-output", role: "status" });
      const stored = cell.querySelector(".cell_output");
      if (!stored) return;
      this.stored = make("details", { class: "live-stored", open: "" },
        make("summary", {}, "Output stored in the book"));
      stored.replaceWith(this.stored);
      this.stored.append(stored);
    }

    get isEmpty() {
      return !this.element.hasChildNodes();
    }

    clear() {
      this.element.replaceChildren();
    }

    /** Fold what is stored beside the output of a run, or show it again. */
    fold(folded) {
      if (this.stored) this.stored.open = !folded;
    }

    receive(type, text) {
      if (type === "html") this.addHtml(text);
      else this.addText(type === "error" ? "live-error" : "live-text", text);
    }

    addHtml(text) {
      const block = this.make("div", { class: "live-html" });
      block.innerHTML = text;
      // Reports link to notebooks, relative to the exercises: here these are pages.
      for (const link of block.querySelectorAll('a[href$=".ipynb"]')) {
        const path = link.getAttribute("href").replace(/^(\.\.\/)+/, "").replace(/ipynb$/, "html");
        link.href = new URL(path, this.root).href;
      }
      openApart(block);
      this.element.append(block);
    }

    addText(kind, text) {
      let last = this.element.lastElementChild;
      if (!last || !last.classList.contains(kind)) {
        last = this.make("pre", { class: kind, tabindex: "0" });
        this.element.append(last);
      }
      const room = MAX_TEXT - last.textContent.length;
      if (room > 0) last.append(text.length > room ? `${text.slice(0, room)}\n…` : text);
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".cell_output [role='group']").forEach(openApart);
  });
}
