// Puts a newer page in the place of the one that is shown, and keeps what the
// reader does: focus, scrolling, what is typed, what is unfolded. Nothing else
// here needs a script.
"use strict";

(() => {
  const every = Math.max(1, Number(document.body.dataset.every) || 5) * 1000;
  const patience = 15000; // for one answer
  let stopped = false, timer = 0, asking = null, awaySince = null;

  // A switch: whoever wants the page to hold still can have that.
  const toggle = document.createElement("button");
  toggle.type = "button";
  toggle.id = "updates";
  const label = () => {
    toggle.setAttribute("aria-pressed", String(stopped));
    toggle.textContent = "Stop updates";
  };
  toggle.addEventListener("click", () => {
    stopped = !stopped;
    label();
    if (stopped) { clearTimeout(timer); } else { look(); }
  });
  label();
  document.getElementById("tools").append(toggle);

  // say tells a screen reader, once for each change of how it is.
  function say(text) { document.getElementById("said").textContent = text; }

  function away(why) {
    awaySince = awaySince || new Date();
    const note = document.getElementById("away");
    note.textContent = `${why} since ${awaySince.toLocaleTimeString()}: what is shown is old. Trying again.`;
    note.hidden = false;
    document.body.classList.add("stale");
  }

  function back() {
    awaySince = null;
    const note = document.getElementById("away");
    note.hidden = true;
    document.body.classList.remove("stale");
    note.textContent = "";
  }

  async function look() {
    clearTimeout(timer);
    if (stopped || document.hidden || asking) { return; }
    asking = new AbortController();
    const limit = setTimeout(() => asking.abort(), patience);
    try {
      const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" }, signal: asking.signal, cache: "no-store" });
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok && answer.status !== 404) { throw new Error(`The server answers ${answer.status}`); }
      show(new DOMParser().parseFromString(await answer.text(), "text/html"));
      back();
    } catch (e) {
      away(e instanceof TypeError || e.name === "AbortError" ? "The server has not answered" : e.message);
    } finally {
      clearTimeout(limit);
      asking = null;
      if (!stopped && !document.hidden) { timer = setTimeout(look, every); }
    }
  }

  function show(next) {
    const focused = document.activeElement, level = document.body.dataset.level;
    document.title = next.title;
    document.body.dataset.level = next.body.dataset.level;
    for (const id of ["seen", "main"]) {
      const from = document.getElementById(id), to = next.getElementById(id);
      if (from && to) { morph(from, to); }
    }
    if (focused && focused !== document.activeElement && focused.isConnected) { focused.focus({ preventScroll: true }); }
    const sentence = document.getElementById("sentence");
    if (sentence && level !== document.body.dataset.level) { say(document.title.split(" · ")[0] + ": " + sentence.textContent); }
  }

  // What belongs to the reader is left as it is.
  const readers = { DETAILS: ["open"], INPUT: ["value"], OPTION: ["selected"] };

  function morph(from, to) {
    const keep = readers[from.nodeName] || [];
    for (const a of Array.from(from.attributes)) {
      if (!to.hasAttribute(a.name) && !keep.includes(a.name)) { from.removeAttribute(a.name); }
    }
    for (const a of Array.from(to.attributes)) {
      if (!keep.includes(a.name) && from.getAttribute(a.name) !== a.value) { from.setAttribute(a.name, a.value); }
    }
    let at = from.firstChild;
    for (let want = to.firstChild; want; want = want.nextSibling) {
      const named = want.id && ahead(at, want);
      while (at && !same(at, want) && (named || !follows(at, want))) { at = removed(at); }
      if (!at || !same(at, want)) {
        from.insertBefore(document.importNode(want, true), at);
        continue;
      }
      if (at.nodeType === Node.ELEMENT_NODE) { morph(at, want); } else if (at.data !== want.data) { at.data = want.data; }
      at = at.nextSibling;
    }
    while (at) { at = removed(at); }
  }

  function removed(node) {
    const next = node.nextSibling;
    node.remove();
    return next;
  }

  function same(a, b) { return a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || ""); }

  // ahead says whether a node, or one behind it, is the one that is wanted.
  function ahead(node, want) {
    for (; node; node = node.nextSibling) { if (same(node, want)) { return true; } }
    return false;
  }

  // follows says whether a node still has a place behind one that is to come.
  function follows(node, want) {
    return ahead(want.nextSibling, node);
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden) { look(); } });
  timer = setTimeout(look, every);
})();
