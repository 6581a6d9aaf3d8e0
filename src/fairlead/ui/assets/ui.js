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
