// The labeling page: asks the server for rows, sends labels. A label is on disk before the next row is asked for.

import { ask, root, windowId } from "/connection.js";
import { element, playSound, showConsensus, showContext, showPanels, stopSound } from "/panels.js";

const at = (id) => root.getElementById(id);
const state = { row: null, status: null, visited: [], place: -1, opinions: localStorage.opinions !== "hidden", sensor: null };

const asJson = async (path, body) => (await ask(path, body)).json();

function say(text) {
  at("message").textContent = text;
  clearTimeout(say.timer);
  if (text) say.timer = setTimeout(() => say(""), 8000);
}

// One action at a time: keys that are pressed meanwhile wait.
let queue = Promise.resolve();
function act(action) {
  queue = queue.then(async () => {
    try { await action(); } catch (error) { await onError(error); }
  });
  return queue;
}

async function onError(error) {
  if (error.status === 409 && state.row && (!error.current || error.current.item === state.row.id)) {
    show(await asJson(`/api/rows/${state.row.row}`), state.row.reason);
    say("This row was changed in another window; its label is shown now.");
  } else say(error.message);
}

const percent = (p) => `${(100 * p).toFixed(1)} %`;

// Text of an element; nothing is announced if it stays the same.
function put(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text;
}

function showStatus(status) {
  state.status = status;
  const e = status.estimate, interval = (low, high) => `${Math.round(100 * e.level)} % interval ${(100 * low).toFixed(1)}–${percent(high)}`;
  put("count", `${status.labeled} of ${status.rows} rows`);
  put("unsure-count", status.unsure ? `${status.unsure} marked as unsure` : "");
  put("accuracy", !e ? "–" : e.is_known ? percent(e.mean) : "unknown");
  put("interval", e ? interval(e.low, e.high) : status.no_estimate);
  put("random-rows", e?.n_random ? `${Math.round(e.n_random)} random ${e.n_random === 1 ? "row" : "rows"}: ${e.random_high - e.random_low <= 0.5 ? percent(e.random_mean) : "unknown"} (${(100 * e.random_low).toFixed(1)}–${percent(e.random_high)})` : "");
  put("gain", e?.first ? `${percent(e.first.mean)} with the first ${e.first.n_labels} labels` : "");
  put("held-out-title", e ? `Of ${e.n_held_out} held-out labels` : "Held-out labels");
  put("held-out", e ? `${percent(e.held_out)} predicted correctly` : "–");
  put("held-out-interval", e ? interval(e.held_out_low, e.held_out_high) : "");
  put("labels-only", e?.labels_only !== undefined ? `${percent(e.labels_only)} by the labels alone` : "");
  put("learning", status.learning ? "learning…" : status.fitted_labels ? "up to date" : "–");
  put("fitted", status.fitted_labels ? `fitted to ${status.fitted_labels} labels` : "");
  put("advice", status.advice);
  put("agreement", agreementText(status));
  showClasses(status.classes);
  showShares(status);
}

function agreementText({ agreement, disputed }) {
  const pairs = agreement.map((a) => `${a.first} and ${a.second} agree on ${a.n_equal} of ${a.n_rows} ${a.n_rows === 1 ? "row" : "rows"}${a.kappa === null ? "" : ` (kappa ${a.kappa.toFixed(2)})`}`);
  return pairs.length ? `${pairs.join("; ")}. ${disputed ? `To review: ${disputed}.` : "Nothing to review."}` : "";
}

function showClasses(classes) {
  const box = at("classes"), shown = classes.map((c) => `${c.name}\u0000${c.count}`).join("\u0001") + "\u0001" + (state.row?.label ?? "");
  if (box.dataset.shown === shown) return;
  box.dataset.shown = shown;
  const focused = root.activeElement?.dataset?.class;
  box.replaceChildren(...classes.map((c, k) => element("button", {
    type: "button", class: "class", "aria-pressed": String(c.name === state.row?.label), "data-class": c.name,
    "aria-keyshortcuts": k < 9 ? String(k + 1) : null, onclick: () => label(c.name),
  }, element("kbd", { text: k < 9 ? String(k + 1) : "·" }), element("span", { class: "name", text: c.name }), element("span", { text: String(c.count) }, element("span", { class: "unseen", text: " labels" })))));
  at("class-names").replaceChildren(...classes.map((c) => element("option", { value: c.name })));
  if (focused !== undefined) [...box.children].find((b) => b.dataset.class === focused)?.focus();
  const review = at("review-class"), chosen = review.value;
  review.replaceChildren(...classes.map((c) => element("option", { value: c.name, text: c.name })));
  if (chosen) review.value = chosen;
}

// Asked once: the question opens by itself when two classes have labels, unless it was answered or skipped.
function showShares({ classes, shares }) {
  const box = at("shares"), list = at("shares-list"), names = classes.map((c) => c.name), shown = names.join("\u0001");
  box.hidden = classes.filter((c) => c.count).length < 2;
  if (!box.hidden && !box.dataset.asked) {
    box.dataset.asked = "yes";
    box.open = !Object.keys(shares).length && localStorage.shares !== "skipped";
  }
  if (list.dataset.shown === shown) return;
  const typed = readShares(), percentOf = (p) => (p === undefined ? "" : String(Number((100 * p).toPrecision(6))));
  list.dataset.shown = shown;
  list.replaceChildren(...names.map((name) => {
    const own = typed[name] ?? shares[name] ?? [], input = (k, word) => element("input", { type: "number", min: 0, max: 100, step: "any", "aria-label": `${name}: ${word} percent`, "data-class": name, value: percentOf(own[k]) });
    return element("div", { class: "share" }, element("span", { class: "name", text: name }), input(0, "at least"), " to ", input(1, "at most"), " %");
  }));
}

// One empty end is 0 or 100 %, a class with two is not sent.
function readShares() {
  const values = new Map();
  for (const input of at("shares-list").querySelectorAll("input")) values.set(input.dataset.class, [...(values.get(input.dataset.class) ?? []), input.value]);
  const given = [...values].filter(([, ends]) => ends.some((end) => end !== ""));
  return Object.fromEntries(given.map(([name, [low, high]]) => [name, [low === "" ? 0 : Number(low) / 100, high === "" ? 1 : Number(high) / 100]]));
}

async function saveShares() {
  showStatus(await asJson("/api/shares", { shares: readShares() }));
  put("saved", "Saved: how often each class is");
  closeShares();
}

function closeShares() {
  localStorage.shares = "skipped";
  at("shares").open = false;
  at("row-title").focus();
}

function show(row, reason) {
  state.row = { ...row, reason };
  const said = row.label !== null ? `Labeled ${row.label}` : row.unsure ? "Marked as unsure" : "Not labeled yet";
  put("row-title", row.id);
  put("reason", reason ? `Shown because: ${reason}` : "");
  put("current", said);
  put("announce", `Row ${row.id}. ${said}.`);
  at("clear").hidden = row.label === null && !row.unsure;
  showContext(at("context"), row, async (column) => (await ask(`/api/picture/${row.row}?column=${encodeURIComponent(column)}`)).blob());
  showPanels(at("panels"), row, state.opinions, play);
  showConsensus(at("consensus"), row, state.opinions);
  if (state.status) showClasses(state.status.classes);
}

async function next() {
  if (state.place < state.visited.length - 1) {
    state.place += 1;
    const [row, reason] = state.visited[state.place];
    show(await asJson(`/api/rows/${row}`), reason);
    return;
  }
  const strategy = at("strategy").value || "suggest";
  const recent = state.visited.slice(-500).map(([row]) => row);
  const wanted = { strategy, window: windowId, class: at("review-class").value || null, annotator: at("annotator").value };
  let row = await asJson("/api/next", { ...wanted, skip: recent });
  if (row.row === null && recent.length) row = await asJson("/api/next", wanted);
  if (row.row === null) {
    say("No such row is left; choose another order.");
    return;
  }
  remember(row.row, row.reason, row.strategy);
  show(row, row.reason);
}

function remember(row, reason, strategy) {
  state.visited.push([row, reason, strategy]);
  state.place = state.visited.length - 1;
}

async function back() {
  if (state.place <= 0) { say("This is the first row."); return; }
  state.place -= 1;
  const [row, reason] = state.visited[state.place];
  show(await asJson(`/api/rows/${row}`), reason);
}

function label(name) {
  return act(() => send("label", name));
}

async function send(action, name) {
  if (!state.row) return;
  const strategy = state.visited[state.place]?.[2] || "search";
  const { status } = await asJson("/api/labels", {
    row: state.row.row, action, label: name ?? null, seen: state.row.revision, window: windowId, chosen_by: strategy, annotator: at("annotator").value,
  });
  say("");
  const said = { label: name, unsure: "unsure", clear: "label removed" }[action];
  put("saved", `Saved: ${state.row.id}, ${said}`);
  showStatus(status);
  await next();
}

async function undo() {
  const row = await asJson("/api/undo", { window: windowId });
  if (row.row === null) { say("There is nothing to undo in this window."); return; }
  const place = state.visited.findLastIndex(([visited]) => visited === row.row);
  if (place >= 0) state.place = place; else remember(row.row, "undone", "search");
  put("saved", `Undone: ${row.id}`);
  show(row, "its label was taken back");
  showStatus(await asJson("/api/status"));
}

async function useClass(name) {
  const input = at("new-class"), known = state.status.classes.find((c) => c.name === name.trim());
  if (known) await send("label", known.name);
  else {
    await asJson("/api/classes", { name });
    showStatus(await asJson("/api/status"));
  }
  input.value = "";
  at("row-title").focus();
}

async function find(text) {
  const list = at("found");
  if (list.dataset.text === text) return;
  const { rows } = text ? await asJson(`/api/search?q=${encodeURIComponent(text)}`) : { rows: [] };
  list.dataset.text = text;
  list.hidden = !text;
  list.replaceChildren(...rows.map((r) => element("li", {}, element("button", {
    type: "button", text: r.label === null ? r.id : `${r.id} (${r.label})`, "data-id": r.id, onclick: () => act(() => openFound(r.row)),
  }))));
  if (!rows.length) list.append(element("li", { text: "No id contains this." }));
}

async function openFound(row) {
  remember(row, "found by its id", "search");
  show(await asJson(`/api/rows/${row}`), "found by its id");
  at("search").value = "";
  await find("");
  at("row-title").focus();
}

// The only row that was found, or the one with exactly this id; else the list gets the focus.
async function openOnly(text) {
  await find(text);
  const buttons = [...at("found").querySelectorAll("button")];
  const only = buttons.length === 1 ? buttons[0] : buttons.find((button) => button.dataset.id === text);
  if (only) only.click(); else buttons[0]?.focus();
}

function play(column) {
  const row = state.row.row;
  state.sensor = column;
  playSound(column, async () => (await ask(`/api/sound/${row}?column=${encodeURIComponent(column)}`)).blob()).catch((error) => say(error.message));
}

// The sound of the sensor that was played last, else the first.
function playAgain() {
  const columns = [...root.querySelectorAll("button.play")].map((button) => button.dataset.column);
  if (columns.length) play(columns.includes(state.sensor) ? state.sensor : columns[0]);
  else say("There is no sound in this row.");
}

function toggleOpinions() {
  state.opinions = !state.opinions;
  localStorage.opinions = state.opinions ? "shown" : "hidden";
  at("opinions-button").setAttribute("aria-pressed", String(state.opinions));
  if (state.row) { showPanels(at("panels"), state.row, state.opinions, play); showConsensus(at("consensus"), state.row, state.opinions); }
}

async function exportLabels(form) {
  const blob = await (await ask(`/api/export?format=${form}`)).blob();
  const names = { csv: "labels.csv", labelstudio: "labels.json", audacity: "labels.zip", raven: "labels.raven.txt" };
  const link = element("a", { href: URL.createObjectURL(blob), download: names[form] || "labels" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (!at("keys-on").checked) return; // for speech input, whose words would act as keys
  if (event.repeat && event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  const number = "123456789".indexOf(event.key);
  const actions = {
    s: () => act(() => send("unsure")), u: () => act(undo), o: toggleOpinions,
    n: () => at("new-class").focus(), "/": () => at("search").focus(),
    ArrowLeft: () => act(back), ArrowRight: () => act(next),
    " ": playAgain, Delete: () => act(() => send("clear")),
  };
  if (number >= 0 && event.key.length === 1) {
    const found = state.status?.classes[number];
    if (found) label(found.name); else say(`There is no class ${event.key} yet; n adds one.`);
  } else if (event.key === " " && event.target.matches("button, summary, a")) return;
  else if (actions[event.key]) actions[event.key]();
  else return;
  event.preventDefault();
}

async function poll() {
  if (root.isConnected) try { showStatus(await asJson("/api/status")); } catch (error) { say(error.message); }
  setTimeout(poll, state.status?.learning ? 700 : 3000);
}

async function start() {
  const status = await asJson("/api/status");
  at("strategy").replaceChildren(...Object.entries(status.strategies).map(([value, text]) => element("option", { value, text })));
  at("exports").replaceChildren("Export: ", ...status.exports.map((form) => element("button", { type: "button", text: form, onclick: () => act(() => exportLabels(form)) })));
  at("opinions-button").setAttribute("aria-pressed", String(state.opinions));
  at("keys-on").checked = localStorage.keys !== "off";
  at("annotator").value = localStorage.annotator || "";
  showStatus(status);
  await next();
  setTimeout(poll, 700);
}

at("strategy").addEventListener("change", () => { at("review-box").hidden = at("strategy").value !== "review"; state.visited = []; state.place = -1; act(next); });
at("review-class").addEventListener("change", () => { state.visited = []; state.place = -1; act(next); });
at("search-form").addEventListener("submit", (event) => { event.preventDefault(); act(() => openOnly(at("search").value)); });
at("search").addEventListener("input", () => act(() => find(at("search").value)));
at("class-form").addEventListener("submit", (event) => { event.preventDefault(); act(() => useClass(at("new-class").value)); });
at("shares-form").addEventListener("submit", (event) => { event.preventDefault(); act(saveShares); });
at("shares-skip").addEventListener("click", closeShares);
at("annotator").addEventListener("change", () => { localStorage.annotator = at("annotator").value; });
at("opinions-button").addEventListener("click", toggleOpinions);
at("unsure").addEventListener("click", () => act(() => send("unsure")));
at("clear").addEventListener("click", () => act(() => send("clear")));
at("undo").addEventListener("click", () => act(undo));
at("back").addEventListener("click", () => act(back));
at("forward").addEventListener("click", () => act(next));
at("keys-on").addEventListener("change", () => { localStorage.keys = at("keys-on").checked ? "on" : "off"; });
root.addEventListener("keydown", onKey);
window.addEventListener("pagehide", stopSound);
// On narrow screens the classes are a bar at the bottom, below which nothing may be hidden.
new ResizeObserver(() => document.documentElement.style.setProperty("--bar", getComputedStyle(at("side")).position === "fixed" ? `${at("side").offsetHeight}px` : "0px")).observe(at("side"));
act(start);
