"use strict";
(() => {
  const { texts, places } = JSON.parse(document.getElementById("places").textContent);
  const told = (value) => (Array.isArray(value) ? value.map(told) : texts[value]);
  const table = document.getElementById("board");
  const form = document.getElementById("filter");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const dialog = document.getElementById("place");
  const said = document.getElementById("said");
  const number = (cell, what) => {
    const text = cell.dataset[what];
    return text === undefined || text === "" ? null : Number(text);
  };

  function columns(row) { return [...row.cells]; }

  function apply() {
    const { task, size, line, cpu, view } = form.elements;
    table.className = view.value ? `view-${view.value}` : "";
    const shown = heads.map((head, i) => i === 0 ||
      ((!size.value || head.dataset.size === size.value) &&
       (!task.value || head.dataset.task === task.value || head.dataset.task === undefined)));
    for (const row of table.rows) {
      columns(row).forEach((cell, i) => cell.classList.toggle("off", !shown[i]));
    }
    const limit = cpu.value === "" ? Infinity : Number(cpu.value);
    let lines = 0;
    for (const row of body.rows) {
      const cells = columns(row).slice(1).filter((cell, i) => shown[i + 1]);
      const costs = cells.map((cell) => number(cell, "cost")).filter((cost) => cost !== null);
      const wanted = row.dataset.line.toLowerCase().includes(line.value.toLowerCase());
      const empty = cells.every((cell) => !cell.firstElementChild);
      const dear = costs.length > 0 && Math.max(...costs) > limit;
      row.classList.toggle("off", !wanted || dear || empty);
      lines += wanted && !dear && !empty ? 1 : 0;
    }
    said.textContent = `${lines} methods, ${shown.filter(Boolean).length - 1} columns`;
  }

  function measure() {
    const view = form.elements.view.value;
    return view === "gain" || view === "cost" ? view : "score";
  }

  function sort(i) {
    const before = heads[i].getAttribute("aria-sort");
    const first = i === 0 || measure() === "cost" || heads[i].dataset.mean !== undefined ? "ascending" : "descending";
    const other = first === "ascending" ? "descending" : "ascending";
    arrange(i, before === first ? other : first);
    remember();
  }

  function arrange(i, now) {
    const what = measure();
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[i].setAttribute("aria-sort", now);
    const sign = now === "ascending" ? 1 : -1;
    const rows = [...body.rows].sort((a, b) => {
      if (i === 0) { return sign * a.dataset.line.localeCompare(b.dataset.line); }
      const [x, y] = [number(a.cells[i], what), number(b.cells[i], what)];
      if (x === null || y === null) { return (x === null) - (y === null); }
      return sign * (x - y);
    });
    body.append(...rows);
  }

  // The address has the view behind "#", which needs no server: what differs from the first view.
  function remember() {
    const state = new URLSearchParams();
    for (const [name, value] of Object.entries(defaults)) {
      const now = form.elements[name].value;
      if (now !== value) { state.set(name, now); }
    }
    const head = heads.find((each) => each.hasAttribute("aria-sort"));
    if (head) { state.set("sort", `${head.getAttribute("aria-sort")} ${head.cellIndex}`); }
    history.replaceState(null, "", `#${state}`);
  }

  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    const names = Object.keys(defaults);
    if (![...names, "sort"].some((name) => state.has(name))) { return; }
    for (const name of names) { form.elements[name].value = state.get(name) ?? defaults[name]; }
    const [now, column] = (state.get("sort") ?? "").split(" ");
    if (heads[column] && ["ascending", "descending"].includes(now)) { arrange(Number(column), now); }
    apply();
  }

  function show(id) {
    const [title, entries] = told(places[id]);
    dialog.querySelector("h2").textContent = title;
    const list = dialog.querySelector("dl");
    list.replaceChildren();
    for (const [name, value] of entries) {
      const term = document.createElement("dt");
      term.textContent = name;
      const text = document.createElement("dd");
      for (const part of Array.isArray(value) ? value : [value]) {
        const item = document.createElement(name === "command" ? "code" : "div");
        item.textContent = part;
        text.append(item);
      }
      list.append(term, text);
    }
    dialog.showModal();
  }

  heads.forEach((head, i) => head.querySelector("button")?.addEventListener("click", () => sort(i)));
  form.addEventListener("input", () => { apply(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  body.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-place]");
    if (button) { show(button.dataset.place); }
  });
  body.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const cell = event.target.closest("td");
    if (!steps[event.key] || !cell) { return; }
    event.preventDefault();
    const rows = [...body.rows].filter((row) => !row.classList.contains("off"));
    let [y, x] = [rows.indexOf(cell.parentElement), cell.cellIndex];
    const [dy, dx] = steps[event.key];
    for (y += dy, x += dx; rows[y]?.cells[x]; y += dy, x += dx) {
      const button = rows[y].cells[x].querySelector("button");
      if (button && !rows[y].cells[x].classList.contains("off")) { button.focus(); return; }
    }
  });
  dialog.querySelector("button").addEventListener("click", () => dialog.close());
  form.hidden = false;
  form.elements.view.value = "score";
  const sizes = form.elements.size;
  if (sizes.options.length > 1) { sizes.selectedIndex = 1; }
  const defaults = Object.fromEntries(["task", "size", "line", "cpu", "view"].map((name) => [name, form.elements[name].value]));
  apply();
  recall();
  window.addEventListener("hashchange", recall);
  window.addEventListener("beforeprint", () => { // paper does not scroll: a landscape page is at least 980 px wide
    for (const each of document.querySelectorAll(".wide table")) {
      each.style.setProperty("--fit", Math.min(1, 980 / (each.scrollWidth || 1)));
    }
  });
})();
