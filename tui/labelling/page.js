// The labelling page. Every text of an item is shown as a text node, never as markup.
"use strict";

const byId = (name) => document.getElementById(name);
const RETRY_MS = [200, 500, 1000, 2000, 4000];
const PATIENCE_MS = 15000;
const NOTICE_MS = 4000;

let author = sessionStorage.getItem("author") || "";
let state = null;
let isBusy = false;
let isOffline = false;
let hasEnded = false;
let waiting = []; // keys that were pressed while an answer was on its way
let typing = ""; // what the text field is for: "note" or "answer"
let hiddenSince = document.hidden ? performance.now() : null;
let awayMs = 0;

// Sends a request until it is answered; the id makes sending it again harmless.
async function send(request) {
  for (let tries = 0; ; tries += 1) {
    let response = null;
    try {
      response = await fetch("do", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(request),
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      const text = await response.text();
      const isState = (response.headers.get("Content-Type") || "").includes("json");
      isOffline = false;
      if (isState) return JSON.parse(text);
      hasEnded = true;
      return { problem: text.trim() || "This session has ended: start it again." };
    } catch (error) {
      isOffline = true;
      waiting = [];
      say("No connection: the last answer is not confirmed yet. Trying again …", 0);
      await new Promise((go) => setTimeout(go, RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]));
    }
  }
}

async function act(what, text = "") {
  if (isBusy || hasEnded) return;
  isBusy = true;
  const away = awayMs + (hiddenSince === null ? 0 : performance.now() - hiddenSince);
  const answer = await send({
    author,
    id: crypto.randomUUID(),
    do: what,
    turn: state === null ? 0 : state.turn,
    text,
    away_s: away / 1000,
  });
  if (["answer", "undo", "skip"].includes(what)) {
    awayMs = 0;
    if (hiddenSince !== null) hiddenSince = performance.now();
  }
  say(answer.problem || "", hasEnded ? 0 : NOTICE_MS);
  if ("turn" in answer) {
    state = answer;
    sessionStorage.setItem("author", author);
    show();
  } else if (state === null) {
    askWho(answer.proposed || author);
  }
  isBusy = false;
  const next = waiting.shift();
  if (next !== undefined) press(next);
}

let silence = 0;
function say(sentence, forMs) {
  clearTimeout(silence);
  byId("problem").textContent = sentence;
  byId("problem").hidden = !sentence;
  if (sentence && forMs) silence = setTimeout(() => say("", 0), forMs);
}

function askWho(proposed) {
  byId("desk").hidden = true;
  byId("who").hidden = false;
  byId("author").value = proposed;
  byId("author").focus();
}

function show() {
  byId("who").hidden = true;
  byId("desk").hidden = false;
  byId("by").textContent = state.author;
  byId("progress").textContent = [...state.progress, state.status].filter(Boolean).join(" · ");
  const share = state.total ? (100 * state.done) / state.total : 0;
  byId("filled").style.width = `${share}%`;
  byId("bar").setAttribute("aria-valuenow", Math.round(share));
  const question = state.question;
  const isOther = byId("item").dataset.item !== (question ? `${question.item}\n${question.field}` : "");
  byId("item").dataset.item = question ? `${question.item}\n${question.field}` : "";
  byId("key").textContent = question ? question.item : "";
  byId("title").textContent = question ? question.title : "";
  byId("text").replaceChildren(...(question ? question.text : []).map(piece));
  byId("blindness").textContent = question ? question.blindness : "";
  byId("statements").replaceChildren(...(question ? question.statements : []).map(statement));
  byId("note").textContent = question && question.note ? `note: ${question.note}` : "";
  byId("question").textContent = question
    ? (question.field ? `${question.field}: ` : "") + question.question
    : state.ending;
  byId("choices").replaceChildren(...(question ? choices(question) : []));
  for (const button of byId("commands").children) {
    const what = button.dataset.do;
    button.hidden = what === "reveal" && !(question && question.can_reveal);
    button.disabled = what === "undo" ? !state.can_undo : question === null;
  }
  closeTyping();
  if (isOther) byId("item").scrollTop = 0;
  byId("item").focus({ preventScroll: true });
}

function piece(part) {
  const node = document.createElement(part.quote ? "mark" : "span");
  node.textContent = part.text;
  return node;
}

function statement(one) {
  const node = document.createElement("li");
  const stated = one.probability === null ? "" : `, p ${one.probability.toFixed(2)}`;
  const reason = one.reason ? ` (${one.reason})` : "";
  node.textContent = `${one.who}: ${one.value || "no value"}${stated}${reason}`;
  return node;
}

function choices(question) {
  const all = question.choices.map((choice) =>
    button(choice.key, choice.label, () => act("answer", choice.value)));
  if (question.open) all.push(button("=", "another value", () => openTyping("answer")));
  return all;
}

function button(key, label, press) {
  const node = document.createElement("button");
  node.append(keySign(key), label);
  node.addEventListener("click", press);
  return node;
}

function keySign(key) {
  const node = document.createElement("kbd");
  node.textContent = key;
  return node;
}

function openTyping(what) {
  typing = what;
  byId("typing").hidden = false;
  byId("typed-label").textContent = what === "note" ? "Note" : "Value";
  byId("typed").value = what === "note" ? state.question.note : "";
  byId("typed").focus();
}

function closeTyping() {
  byId("typing").hidden = true;
  byId("item").focus({ preventScroll: true });
}

function command(what) {
  if (what === "note") openTyping("note");
  else act(what);
}

// Does what a key stands for; returns whether it stands for anything.
function press(key) {
  if (state === null) return false;
  const question = state.question;
  const chosen = question && question.choices.find((choice) => choice.key === key);
  if (chosen) act("answer", chosen.value);
  else if (question && question.open && key === "=") openTyping("answer");
  else {
    const name = key === "Backspace" ? "z" : key;
    const found = [...byId("commands").children].find((node) => node.dataset.key === name);
    if (!found || found.hidden || found.disabled) return false;
    command(found.dataset.do);
  }
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.tagName === "INPUT") {
    if (event.key === "Escape") closeTyping();
    return;
  }
  if (event.target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " ")) return;
  if (isBusy) {
    if (!isOffline && event.key.length === 1) waiting.push(event.key);
    if (event.key === "/") event.preventDefault(); // Firefox would search the page
  } else if (press(event.key)) {
    event.preventDefault();
  }
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) hiddenSince = performance.now();
  else if (hiddenSince !== null) {
    awayMs += performance.now() - hiddenSince;
    hiddenSince = null;
  }
});

byId("who").addEventListener("submit", (event) => {
  event.preventDefault();
  author = byId("author").value.trim();
  if (author) act("show");
});

byId("typing").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("typed").value.trim();
  if (typing === "note" || text) act(typing, text);
});

byId("typing-back").addEventListener("click", closeTyping);

for (const node of byId("commands").children) {
  node.prepend(keySign(node.dataset.key));
  node.addEventListener("click", () => command(node.dataset.do));
}

act("show");
