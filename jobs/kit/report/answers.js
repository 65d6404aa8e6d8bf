"use strict";
(() => {
  const [legend, ...rows] = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 25;
  const inputs = ["field", "model", "flag", "search"].map((id) => document.getElementById(id));
  const [field, model, flag, search] = inputs;
  const main = document.getElementById("rows");
  const count = document.getElementById("count");
  const previous = document.getElementById("previous");
  const next = document.getElementById("next");
  let matches = [];
  let page = 0;

  const make = (name, kind, text) => {
    const node = document.createElement(name);
    if (kind) node.className = kind;
    if (text) node.textContent = text;
    return node;
  };

  const textOf = (row, value) =>
    [row.id, row.title, value.value, value.state, ...value.quotes.map((q) => q[1])]
      .join("\n").toLowerCase();

  const shown = (row) => {
    if (model.value && row.model !== model.value) return [];
    const wanted = search.value.trim().toLowerCase();
    return row.values.filter((value) =>
      (!field.value || value.field === field.value) &&
      (!flag.value || value.flags.includes(flag.value)) &&
      (!wanted || textOf(row, value).includes(wanted)));
  };

  const quoteNode = ([before, quote, after, place, isLocated]) => {
    const block = make("blockquote", isLocated ? "" : "absent");
    block.append(before, make(isLocated ? "mark" : "span", "", quote), after);
    block.append(make("span", "place", isLocated ? place : "this quote is not in the text"));
    return block;
  };

  const valueNode = (value) => {
    const node = make("div", "answer");
    const left = make("div");
    left.append(make("div", "field", value.field));
    left.append(value.value === null
      ? make("div", "value none", value.state) : make("div", "value", value.value));
    for (const key of value.flags) {
      if (legend.flags[key] && legend.flags[key] !== value.state) {
        left.append(make("span", "flag", legend.flags[key]));
      }
    }
    for (const note of value.notes) left.append(make("span", "note", note));
    const right = make("div");
    right.append(...value.quotes.map(quoteNode));
    node.append(left, right);
    return node;
  };

  const show = () => {
    const pages = Math.max(1, Math.ceil(matches.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    const first = page * PAGE;
    main.replaceChildren(...matches.slice(first, first + PAGE).map(([row, values]) => {
      const article = make("article");
      article.append(make("h2", "", row.id));
      article.append(make("div", "model", [row.title, row.model].filter(Boolean).join(" · ")));
      article.append(...values.map(valueNode));
      return article;
    }));
    const last = Math.min(first + PAGE, matches.length);
    count.textContent = matches.length
      ? `${first + 1} to ${last} of ${matches.length} rows` : "no row matches";
    previous.disabled = page === 0;
    next.disabled = page === pages - 1;
  };

  const filter = () => {
    matches = [];
    for (const row of rows) {
      const values = shown(row);
      if (values.length) matches.push([row, values]);
    }
    page = 0;
    show();
  };

  let timer = 0;
  for (const input of inputs) {
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(filter, 120);
    });
  }
  document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
  previous.addEventListener("click", () => { page -= 1; show(); scrollTo(0, 0); });
  next.addEventListener("click", () => { page += 1; show(); scrollTo(0, 0); });
  filter();
})();
