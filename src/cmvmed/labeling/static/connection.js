// How the page reaches the server, and where its elements are; notebook.js does this in a notebook.

export const root = document;
export const windowId = sessionStorage.windowId || (sessionStorage.windowId = crypto.randomUUID());
const token = readToken();

function readToken() {
  const given = new URLSearchParams(location.search).get("token");
  if (given) {
    sessionStorage.token = given;
    history.replaceState(null, "", "/");
  }
  return sessionStorage.token || "";
}

export async function ask(path, body = null) {
  const options = { headers: { Authorization: `Bearer ${token}` } };
  if (body) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try { response = await fetch(path, options); } catch { throw new Error("The server does not answer; start cmvmed label again."); }
  if (!response.ok) {
    const found = await response.json().catch(() => ({}));
    const error = new Error(found.error || `The server answers ${response.status}.`);
    error.status = response.status;
    error.current = found.current;
    throw error;
  }
  return response;
}
