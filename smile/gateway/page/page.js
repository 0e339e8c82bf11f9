// Shows one view at a time as a table that follows its changes. Only text is ever put into the page.
"use strict";

const ROWS_SHOWN_MAX = 500;
const CHANGED_MS = 1500;

const byId = (id) => document.getElementById(id);
const tableHead = document.querySelector("thead");
const tableBody = document.querySelector("tbody");
let source = null;
let columns = [];
let rows = new Map(); // key as JSON -> {row, final, bounds, at}
let isDue = false;
let token = "";

function say(text) {
  byId("status").textContent = text;
}

function withToken(path, parameters = {}) {
  const query = new URLSearchParams(parameters);
  if (token) query.set("token", token);
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

async function begin() {
  let answer;
  try {
    answer = await fetch(withToken("views"));
  } catch {
    say("The gateway does not answer");
    return;
  }
  const told = await answer.json();
  if (answer.status === 401) {
    byId("ask-token").hidden = false;
    say("This gateway wants a token");
    return;
  }
  if (!answer.ok) {
    say(told.error);
    return;
  }
  byId("program").textContent = told.program;
  const choice = byId("view");
  choice.replaceChildren();
  for (const kind of ["view", "stream", "table"]) {
    const group = document.createElement("optgroup");
    group.label = `${kind}s`;
    for (const view of told.views.filter((one) => one.kind === kind)) {
      const option = document.createElement("option");
      option.textContent = view.name;
      option.columns = view.columns;
      group.append(option);
    }
    if (group.children.length) choice.append(group);
  }
  follow();
}

function follow() {
  const option = byId("view").selectedOptions[0];
  if (source) source.close();
  if (!option) return;
  columns = option.columns;
  rows = new Map();
  byId("caption").textContent = option.textContent;
  const line = document.createElement("tr");
  for (const column of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = column.name;
    cell.title = column.type;
    line.append(cell);
  }
  tableHead.replaceChildren(line);
  draw();
  say("Connecting");
  const path = `views/${encodeURIComponent(option.textContent)}/changes`;
  source = new EventSource(withToken(path, { emit: byId("emit").value }));
  source.addEventListener("snapshot", (event) => learn(JSON.parse(event.data)));
  source.addEventListener("changes", (event) => learn(JSON.parse(event.data)));
  source.addEventListener("failed", (event) => {
    source.close();
    say(`Stopped: ${JSON.parse(event.data).reason}. The rows below are the last true state.`);
  });
  source.onopen = () => say("Live");
  source.onerror = () => say("Connection lost; trying again. The rows below are still true, but may be old.");
}

function learn(told) {
  if (told.first) rows = new Map();
  const at = told.kind === "changes" ? performance.now() : -CHANGED_MS;
  for (const change of told.changes) {
    const key = JSON.stringify(change.key);
    if (change.kind === "gone") rows.delete(key);
    else rows.set(key, { row: change.row, final: change.final, bounds: change.bounds, at });
  }
  if (!told.more && !isDue) {
    isDue = true;
    requestAnimationFrame(draw);
  }
}

function shown(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function cellOf(column, told) {
  const cell = document.createElement(column.key ? "th" : "td");
  if (column.key) cell.scope = "row";
  const value = told.row[column.name];
  cell.textContent = shown(value);
  if (typeof value === "number") cell.className = "number";
  const bounds = told.bounds && told.bounds[column.name];
  if (bounds && JSON.stringify(bounds[0]) !== JSON.stringify(bounds[1])) {
    cell.textContent = `${shown(bounds[0])} … ${shown(bounds[1])}`;
  }
  return cell;
}

function draw() {
  isDue = false;
  const now = performance.now();
  const lines = [];
  let isFading = false;
  for (const told of rows.values()) {
    if (lines.length === ROWS_SHOWN_MAX) break;
    const line = document.createElement("tr");
    if (now - told.at < CHANGED_MS) {
      line.classList.add("changed");
      isFading = true;
    }
    if (told.final) line.classList.add("final");
    line.append(...columns.map((column) => cellOf(column, told)));
    lines.push(line);
  }
  tableBody.replaceChildren(...lines);
  byId("more").hidden = rows.size <= ROWS_SHOWN_MAX;
  byId("more").textContent = `and ${rows.size - ROWS_SHOWN_MAX} more rows`;
  if (isFading) setTimeout(() => requestAnimationFrame(draw), CHANGED_MS);
}

byId("view").addEventListener("change", follow);
byId("emit").addEventListener("change", follow);
byId("choice").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value;
  begin();
});
begin();
