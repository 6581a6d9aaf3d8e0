// The inspector's script. A page works without it, except for signing in; it adds what is live, details that are fetched
// on opening, keys, and answers to questions. The server makes all HTML.

const KEY = "fairlead-key";

// --- signing in: the token is behind the #, which the browser never sends ---------------------------

async function signIn(words) {
  const token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (!token) {
    words.textContent = "Open the address that `fairlead ui` printed. It works once.";
    return;
  }
  const answer = await fetch("/sign-in", { method: "POST", headers: { "x-fairlead-token": token } });
  if (!answer.ok) {
    words.textContent = "This address was used already, or is another run's. Press Enter where `fairlead ui` runs for a new one.";
    return;
  }
  sessionStorage.setItem(KEY, (await answer.json()).key);
  location.replace("/");
}

const words = document.getElementById("sign-in");
if (words) signIn(words);

// --- what changes something: a form with data-post --------------------------------------------------

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-post]");
  if (!form) return;
  event.preventDefault();
  const status = form.querySelector("[role=status]");
  const answer = await fetch(form.dataset.post, {
    method: "POST",
    headers: { "x-fairlead-key": sessionStorage.getItem(KEY) ?? "" },
    body: new URLSearchParams(new FormData(form, event.submitter)),
  });
  if (answer.redirected) location.assign(answer.url);
  else if (answer.ok) location.reload();
  else if (status) status.textContent = await answer.text();
});

// --- questions: a live list. A card that is there stays as it is, so that nothing that is typed is lost ----

function followQuestions(place) {
  let source = null;

  const merge = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html; // the server escapes it
    const cards = new Map([...template.content.querySelectorAll("#questions > li")].map((card) => [card.id, card]));
    const list = document.getElementById("questions");
    for (const old of [...list.children]) {
      const now = cards.get(old.id);
      cards.delete(old.id);
      if (now) old.querySelector(".left")?.replaceWith(now.querySelector(".left"));
      else if (old.contains(document.activeElement)) endCard(old);
      else old.remove();
    }
    list.append(...cards.values());
  };

  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(place.dataset.questions);
    source.addEventListener("questions", (event) => merge(event.data));
  };

  const close = () => {
    source?.close();
    source = null;
  };

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  setInterval(countDown, 1000, place);
  open();
}

function endCard(card) {
  card.querySelectorAll("button, input").forEach((field) => (field.disabled = true));
  const status = card.querySelector("[role=status]");
  if (status) status.textContent = "This was answered elsewhere, or the time for it is over.";
}

function countDown(place) {
  for (const left of place.querySelectorAll("[data-until]")) {
    const seconds = Math.round(Number(left.dataset.until) - Date.now() / 1000);
    left.textContent = seconds > 0 ? `the call waits ${seconds} s more` : "the call no longer waits";
  }
}

const questions = document.querySelector("[data-questions]");
if (questions) followQuestions(questions);

// --- details that are fetched when they are opened --------------------------------------------------

document.addEventListener("toggle", async (event) => {
  const details = event.target;
  if (!details.open || !details.dataset?.src) return;
  const source = details.dataset.src;
  delete details.dataset.src;
  const answer = await fetch(source);
  if (answer.ok) details.querySelector(".opened").innerHTML = await answer.text(); // the server escapes it
  else details.dataset.src = source;
}, true);

// --- a link to a row opens it, whether it is quiet or not -------------------------------------------

function openTarget() {
  const row = location.hash.startsWith("#m")
    ? document.getElementById(location.hash.slice(1))
    : document.querySelector("[data-here]");
  if (!row) return;
  if (!location.hash) row.scrollIntoView({ block: "center" });
  const details = row.querySelector("details");
  if (details) details.open = true;
  row.querySelector("summary")?.focus({ preventScroll: true });
}

addEventListener("hashchange", openTarget);
openTarget();

// --- keys: j and k go from row to row, / to the search ----------------------------------------------

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  }
  if (event.key !== "j" && event.key !== "k") return;
  const rows = [...document.querySelectorAll("#rows > li > details > summary, #rows > tr a.title")]
    .filter((row) => row.checkVisibility());
  const here = rows.indexOf(document.activeElement.closest("summary, a.title"));
  const next = rows[here + (event.key === "j" ? 1 : -1)] ?? (here < 0 ? rows[0] : null);
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
});

// --- what is live: one feed for each tab, closed while the tab is hidden -----------------------------

const MOST = 500; // rows of a page
const SUMMARY_EVERY = 2000; // milliseconds

function follow(main) {
  const rows = document.getElementById("rows");
  const status = document.getElementById("live");
  const newestFirst = rows.tagName === "TBODY";
  let source = null;
  let last = 0;
  let summary = 0;
  const waiting = [];

  const say = (word, on) => {
    if (status.textContent !== word) status.textContent = word;
    status.classList.toggle("on", on);
  };

  const open = () => {
    if (source || document.hidden) return;
    const address = new URL(main.dataset.live, location.origin);
    if (last) address.searchParams.set("after", last);
    source = new EventSource(address);
    source.onopen = () => say("live", true);
    source.onerror = () => say("not connected", false); // the browser tries again
    source.addEventListener("row", (event) => {
      last = event.lastEventId;
      if (waiting.push(event.data) === 1) requestAnimationFrame(flush);
      if (main.dataset.summary && !summary) summary = setTimeout(refresh, SUMMARY_EVERY);
    });
  };

  const close = () => {
    source?.close();
    source = null;
    flush();
    say("paused", false);
  };

  const refresh = async () => {
    summary = 0;
    const answer = await fetch(main.dataset.summary);
    const place = document.getElementById("summary");
    if (answer.ok && !place.contains(document.activeElement)) place.innerHTML = await answer.text();
  };

  // The rows of a frame are put in together: where the page ends is worked out once, and not for each of them.
  const flush = () => {
    if (!waiting.length) return;
    const following = !newestFirst && innerHeight + scrollY >= document.documentElement.scrollHeight - 60;
    for (const html of waiting.splice(0)) add(html);
    while (rows.children.length > MOST) (newestFirst ? rows.lastElementChild : rows.firstElementChild).remove();
    if (following) scrollTo({ top: document.documentElement.scrollHeight });
  };

  const add = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html; // the server escapes it
    const row = template.content.firstElementChild;
    const old = document.getElementById(row.id);
    if (old && !newestFirst) update(old, row);
    else {
      old?.remove();
      row.classList.add("new");
      if (newestFirst) rows.prepend(row);
      else rows.append(row);
    }
  };

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  open();
}

// A row that got another record: what is open stays open, and what has the focus keeps it.
function update(old, row) {
  old.className = row.className;
  const [before, after] = [old.querySelector("summary"), row.querySelector("summary")];
  before.replaceChildren(...after.childNodes);
  const details = old.querySelector("details");
  details.dataset.src = row.querySelector("details").dataset.src;
  if (details.open) details.dispatchEvent(new Event("toggle"));
}

// --- a search that looks further back by itself, until there is enough, or it is stopped -------------

async function searchOn() {
  for (let more = document.getElementById("more"); more?.dataset.auto !== undefined; more = document.getElementById("more")) {
    const answer = await fetch(more.dataset.more);
    if (!answer.ok || !more.isConnected || more.dataset.auto === undefined) return;
    const template = document.createElement("template");
    template.innerHTML = await answer.text(); // the server escapes it
    document.getElementById("rows").append(...template.content.querySelectorAll("#rows > *"));
    const next = template.content.getElementById("more");
    if (document.querySelectorAll("#rows > *").length >= MOST) delete next?.dataset.auto;
    if (next) more.replaceWith(next);
    else more.remove();
  }
}

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-stop]")) return;
  delete document.getElementById("more").dataset.auto;
  event.target.remove();
});

searchOn();

const main = document.querySelector("main[data-live]");
if (main) follow(main);
