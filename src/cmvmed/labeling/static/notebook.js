// The page in a cell of a notebook, in place of connection.js: requests are messages to the kernel, which answers them as
// the server would. widget.py gives model, el and PAGE, the styles and the markup, which hold no data.

const PATIENCE = 6000; // milliseconds without an answer until the page says so
const root = el.attachShadow({ mode: "open" });
root.innerHTML = PAGE;
el.dataset.lmSuppressShortcuts = "true"; // keys act on the page, not on the cells of the notebook
root.addEventListener("keydown", (event) => event.stopPropagation());
const windowId = `notebook-${Date.now()}-${Math.random()}`;
const waiting = new Map();
let nAsked = 0;

function onAnswer(found, buffers) {
  const request = waiting.get(found.id);
  if (!request) return; // of another view of this widget
  waiting.delete(found.id);
  clearTimeout(request.timer);
  if (!waiting.size) root.getElementById("message").textContent = "";
  if (found.status !== 200) request.reject(Object.assign(new Error(found.json?.error || `The kernel answers ${found.status}.`), { status: found.status, current: found.json?.current }));
  else request.resolve({ json: async () => found.json, blob: async () => new Blob(buffers, { type: found.type }) });
}

function ask(path, body = null) {
  const id = `${windowId}:${++nAsked}`;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => { root.getElementById("message").textContent = "The kernel does not answer; what was chosen last is not saved until it does."; }, PATIENCE);
    waiting.set(id, { resolve, reject, timer });
    model.send({ id, path, body });
  });
}

function leave() {
  model.off("msg:custom", onAnswer);
  stopSound();
}

model.on("msg:custom", onAnswer);
