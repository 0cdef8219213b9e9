// The page works without this file: links, forms, reload. Here: live updates, dialogs, keys, times in the reader's zone.
// Text from jobs is only ever put into the page by the server's escaped HTML or by textContent.
(() => {
  "use strict";
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const body = document.body;
  const root = document.documentElement;

  // ------------------------------------------------------------------ times

  // Elapsed times and countdowns follow the server's clock: the reader's may be wrong.
  let skew = Date.parse(root.dataset.now) - Date.now() || 0;
  const now = () => Date.now() + skew;
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
  const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

  const duration = (seconds) => {
    const s = Math.max(0, seconds);
    if (s < 60) return `${Math.floor(s)} s`;
    if (s < 3600) return `${Math.floor(s / 60)} m ${Math.floor(s % 60)} s`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} m`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
  };

  const relative = (ms) => {
    const s = Math.abs(ms) / 1000;
    const [n, unit] =
      s < 60 ? [Math.floor(s), "second"]
      : s < 3600 ? [Math.floor(s / 60), "minute"]
      : s < 86400 ? [Math.floor(s / 3600), "hour"]
      : [Math.floor(s / 86400), "day"];
    const words = `${n} ${unit}${n === 1 ? "" : "s"}`;
    if (s < 1) return "now";
    return ms < 0 ? `${words} ago` : `in ${words}`;
  };

  const setText = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };

  const showTime = (time) => {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) return;
    const kind = time.classList;
    if (kind.contains("elapsed")) setText(time, duration((now() - at) / 1000));
    else if (kind.contains("countdown")) setText(time, at > now() ? duration((at - now()) / 1000 + 0.999) : "now");
    else if (kind.contains("ago")) setText(time, relative(at - now()));
    else if (kind.contains("clock")) {
      const other = day.format(at) !== day.format(now());
      setText(time, other ? `${day.format(at)} ${clock.format(at)}` : clock.format(at));
    } else if (kind.contains("time")) setText(time, moment.format(at));
    if (time.dataset.shown !== time.dateTime) {
      time.dataset.shown = time.dateTime;
      time.title = exact.format(at);
    }
  };
  const showTimes = (within = document) => $$("time[datetime]", within).forEach(showTime);
  setInterval(() => {
    if (!document.hidden) $$("time.elapsed, time.countdown, time.ago").forEach(showTime);
  }, 1000);
  showTimes();

  // ------------------------------------------------------------------ light and dark

  $("#theme")?.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("groupmq:theme", root.dataset.theme);
    } catch {
      // Storage is off: the choice holds for this page.
    }
    document.dispatchEvent(new CustomEvent("groupmq:theme"));
  });

  // ------------------------------------------------------------------ messages

  const toast = (text, keep = 6000) => {
    const box = document.createElement("div");
    const close = document.createElement("button");
    const words = document.createElement("span");
    box.className = "toast";
    words.textContent = text;
    close.type = "button";
    close.textContent = "Close";
    close.addEventListener("click", () => box.remove());
    box.append(words, close);
    $("#toasts").append(box);
    setTimeout(() => box.remove(), keep);
  };
  const later = (text) => {
    try {
      sessionStorage.setItem("groupmq:toast", text);
    } catch {
      // Storage is off: the message is lost, the action is not.
    }
  };
  try {
    const text = sessionStorage.getItem("groupmq:toast");
    if (text) {
      sessionStorage.removeItem("groupmq:toast");
      toast(text);
    }
  } catch {
    // Storage is off.
  }

  // ------------------------------------------------------------------ copy

  const copy = async (text) => {
    if (navigator.clipboard && window.isSecureContext) {
      await navigator.clipboard.writeText(text);
      return;
    }
    // On plain http there is no clipboard object: select the text in a field and copy that.
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "sr";
    (document.querySelector("dialog[open]") || body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (!done) throw new Error("not copied");
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const label = $("span", button);
    const before = label.dataset.label || label.textContent;
    label.dataset.label = before; // while this is set, a live update leaves the label alone
    try {
      await copy(button.dataset.copy);
      label.textContent = "Copied";
    } catch {
      label.textContent = "Not copied";
    }
    clearTimeout(label.timer);
    label.timer = setTimeout(() => {
      label.textContent = before;
      delete label.dataset.label;
    }, 1600);
  });

  // ------------------------------------------------------------------ live part

  const live = $("#live");
  const here = () => location.pathname + location.search;
  let fetching = false;
  let stale = false;
  let lastFetch = 0;
  let paused = false;
  let acting = false; // an action is under way: its answer decides which page comes next
  const PACE = 1000;

  const busyReading = () => {
    const selection = getSelection();
    return selection && !selection.isCollapsed && live?.contains(selection.anchorNode);
  };

  const refresh = async () => {
    if (!live || document.hidden || paused) return;
    if (fetching || acting || busyReading()) {
      stale = true;
      return;
    }
    const wait = lastFetch + PACE - Date.now();
    fetching = true;
    stale = false;
    if (wait > 0) await new Promise((done) => setTimeout(done, wait));
    if (document.hidden || paused || acting) {
      fetching = false;
      stale = true;
      return;
    }
    lastFetch = Date.now();
    try {
      const answer = await fetch(here(), { headers: { "X-Fragment": "live", Accept: "text/html" } });
      if (answer.status === 401 || answer.redirected) location.reload(); // the session has ended
      else if (answer.status === 404 && (body.dataset.job || body.dataset.task)) trouble("This is gone: it was removed, or is no longer kept.", "The page shows its last known state.");
      else if (answer.ok) {
        const html = await answer.text();
        if (busyReading() || acting) stale = true;
        else await morph(html);
      }
    } catch {
      // The stream shows when the dashboard cannot be reached.
    } finally {
      fetching = false;
      if (stale && !busyReading()) setTimeout(refresh, PACE);
    }
  };

  const morph = (html) => htmx.swap({ sourceElement: live, target: live, text: html, swap: "innerMorph", transition: false, title: null });

  // A live update leaves alone: details that the reader has opened, the label of a button that was just pressed,
  // and times that did not change.
  htmx.registerExtension("groupmq", {
    htmx_before_morph_attr: (element, { attrName }) =>
      !((attrName === "open" && element.tagName === "DETAILS") || attrName === "data-shown" || (attrName === "title" && element.tagName === "TIME")),
    htmx_before_morph_node: (element, { oldNode, newNode }) => {
      if (oldNode.dataset?.label) return false; // it shows "Copied" for a short time
      if (oldNode.nodeName !== "TIME" || newNode.nodeName !== "TIME") return true;
      oldNode.dateTime = newNode.dateTime;
      oldNode.className = newNode.className;
      showTime(oldNode);
      return false;
    },
  });
  // Chips that do not fit into their lane wrap below it, out of sight.
  const countBehind = () => {
    for (const more of $$(".more-behind")) {
      more.hidden = false;
      const chips = $$("li", more.previousElementSibling);
      const hidden = chips.filter((chip) => chip.offsetTop > chips[0].offsetTop).length + Number(more.dataset.more);
      more.hidden = !hidden;
      setText(more, `+${hidden >= 10000 ? `${Math.floor(hidden / 1000)}k` : hidden.toLocaleString()}`);
    }
  };
  countBehind();
  document.fonts?.ready.then(countBehind);
  addEventListener("resize", countBehind);
  document.addEventListener("htmx:after:swap", () => {
    showTimes();
    countBehind();
    choose(chosen, false);
    document.dispatchEvent(new CustomEvent("groupmq:swapped"));
  });

  // ------------------------------------------------------------------ stream

  const sign = $("#live-state");
  const stream = $("#stream");
  const WORDS = { start: "Connecting", live: "Live", paused: "Paused", lost: "Connection lost", gap: "Caught up after a gap" };
  let retry = 0;
  let retryTimer = 0;

  let actual = "start";
  const show = (state) => {
    actual = state;
    if (!sign) return;
    if (paused) state = "paused";
    sign.dataset.state = state;
    $(".word", sign).textContent = WORDS[state];
    sign.title = { live: "The page updates automatically. Click to pause.", paused: "Updates are paused. Click to resume.", lost: "The dashboard cannot be reached. The page keeps trying.", gap: "Some changes were missed; the page was loaded again." }[state] || "";
  };
  const trouble = (text, hint = "") => {
    const box = $("#trouble");
    box.hidden = !text;
    box.replaceChildren();
    if (!text) return;
    const notice = document.createElement("div");
    notice.className = "notice fail";
    const inner = document.createElement("div");
    for (const line of [text, hint].filter(Boolean)) {
      const p = document.createElement("p");
      p.textContent = line;
      inner.append(p);
    }
    notice.append(inner);
    box.append(notice);
  };

  const open = () => {
    if (!stream || document.hidden || paused || stream._htmx?.sse) return;
    htmx.trigger(stream, "groupmq:open");
  };
  const again = () => {
    clearTimeout(retryTimer);
    retry = Math.min(retry + 1, 6);
    retryTimer = setTimeout(open, 500 * 2 ** retry * (0.7 + Math.random() * 0.6));
  };

  // Numbers of the frame: jobs by state, and workers.
  const compact = (n) => {
    const [size, unit] = [[1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([least]) => n >= least) || [1, ""];
    return unit ? `${(n / size).toFixed(1).replace(/\.0$/, "")}${unit}` : String(n);
  };
  const count = ({ counts = {}, workers }) => {
    for (const element of $$("[data-count]")) {
      const n = { ...counts, workers }[element.dataset.count];
      if (typeof n !== "number" || paused) continue;
      setText(element, compact(n));
      if (element.classList.contains("tag")) element.hidden = !n;
    }
  };

  const concerns = (message) => {
    const { job, group, page } = body.dataset;
    const { pages = [], jobs = [], groups = [], more } = message;
    // Another job of the group can change the position of this one.
    if (page === "job" || page === "group") return more || jobs.includes(job) || groups.includes(group);
    return pages.includes(page);
  };

  if (stream) {
    let greeted = false;
    const on = (name, act) =>
      stream.addEventListener(name, (event) => {
        let message = {};
        try {
          message = JSON.parse(event.detail?.data || "{}");
        } catch {
          return;
        }
        act(message);
      });
    on("hello", (message) => {
      retry = 0;
      if (message.at) skew = Date.parse(message.at) - Date.now() || skew;
      show(message.missed ? "gap" : "live");
      if (message.missed) setTimeout(() => show("live"), 6000);
      // The first stream begins at the event at which the page was made: nothing is missed. Tasks have no events.
      if (greeted || message.missed || "task" in body.dataset) update();
      greeted = true;
    });
    on("changed", (message) => { if (concerns(message)) update(); });
    on("missed", () => { show("gap"); setTimeout(() => show("live"), 6000); update(); });
    on("gone", (message) => { show("lost"); trouble("The server of the queues cannot be reached.", message.text || ""); });
    on("back", () => { show("live"); trouble(""); update(); });
    on("task", (message) => { if (message.id && message.id === body.dataset.task) update(); });
    on("snapshot", (message) => {
      count(message);
      update(); // the numbers changed, with or without events
    });

    stream.addEventListener("htmx:sse:after:connection", (event) => {
      if (event.detail.connection.status < 400) trouble("");
    });
    stream.addEventListener("htmx:sse:error", (event) => {
      if (event.detail.status === 401) return location.reload(); // the session has ended
      show("lost");
      trouble("The dashboard cannot be reached.", "This page may be out of date. It keeps trying to connect.");
    });
    stream.addEventListener("htmx:sse:close", (event) => { if (event.detail.reason === "ended") again(); });
    // The first request failed, or was answered with an error. htmx does not retry it, so try again from here.
    stream.addEventListener("htmx:error", () => {
      if (stream._htmx?.sse) return;
      show("lost");
      again();
    });
    stream.addEventListener("htmx:response:error", (event) => {
      if (event.detail.ctx?.response?.status === 401) return location.reload();
      show("lost");
      again();
    });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) open(); });
    // htmx processes the page once, from a timer, and its extension may not be loaded by then. So connect here, later.
    setTimeout(() => {
      stream.setAttribute("hx-sse:connect", stream.dataset.href);
      htmx.process(stream);
      open();
    });
  }

  // An error page about the server is requested again, as its text promises.
  const LOOK_EVERY = 5000;
  const lookAgain = async () => {
    try {
      const answer = document.hidden ? null : await fetch(here(), { headers: { Accept: "text/html" } });
      if (answer && answer.status !== 503) return location.replace(location.href);
    } catch {
      // The dashboard itself cannot be reached.
    }
    setTimeout(lookAgain, LOOK_EVERY);
  };
  if ($("#problem[data-unreachable]")) setTimeout(lookAgain, LOOK_EVERY);

  const update = () => {
    if (paused) return;
    if ("tail" in body.dataset) follow();
    else refresh();
  };
  // Log lines are not in the event log: the page of a running job fetches them at intervals.
  const LOGS_EVERY = 3000;
  setInterval(() => { if (actual === "live" && $("[data-running]")) update(); }, LOGS_EVERY);
  const pause = () => {
    paused = !paused;
    show(actual);
    const button = $("#tail-pause");
    if (button) {
      button.setAttribute("aria-pressed", String(paused));
      $("span", button).textContent = paused ? "Resume" : "Pause";
    }
    if (paused) return;
    open();
    update();
  };
  sign?.addEventListener("click", pause);
  $("#tail-pause")?.addEventListener("click", pause);
  document.addEventListener("selectionchange", () => { if (stale && !busyReading()) refresh(); });

  // ------------------------------------------------------------------ events

  const tail = $("#tail");
  const MOST = 500;
  let following = false;
  let missedTurn = false;
  let upto = null; // how far the log was read, even if the filters hide its events
  const remember = (part) => {
    const end = $("li[data-upto]", part);
    if (!end) return;
    upto = end.dataset.upto;
    end.remove();
  };
  if (tail) remember(tail);

  const follow = async () => {
    if (!tail || paused || document.hidden) return;
    if (following) {
      missedTurn = true;
      return;
    }
    following = true;
    missedTurn = false;
    try {
      const url = new URL(tail.dataset.rows, location.href);
      if (upto) url.searchParams.set("since", upto);
      const answer = await fetch(url, { headers: { "X-Fragment": "rows", Accept: "text/html" } });
      if (!answer.ok) return;
      const part = new DOMParser().parseFromString(`<ol>${await answer.text()}</ol>`, "text/html");
      remember(part);
      const known = new Set($$("li[data-id]", tail).map((row) => row.dataset.id));
      const rows = $$("li", part).filter((row) => !known.has(row.dataset.id));
      rows.forEach((row) => row.classList.add("new"));
      const before = tail.getBoundingClientRect().height;
      tail.prepend(...rows.map((row) => document.importNode(row, true)));
      // A reader who has scrolled down keeps the rows in view.
      if (window.scrollY > 200) window.scrollBy(0, tail.getBoundingClientRect().height - before);
      $$("li", tail).slice(MOST).forEach((row) => row.remove());
      if (tail.children.length) $("#tail-empty").hidden = true;
      showTimes(tail);
    } catch {
      // The stream shows when the dashboard cannot be reached.
    } finally {
      following = false;
      setTimeout(() => { if (missedTurn) follow(); }, PACE);
    }
  };
  // ------------------------------------------------------------------ dialogs and actions

  const dialog = $("#dialog");
  const inside = $("#dialog-body");
  const showDialog = (html) => {
    const part = new DOMParser().parseFromString(html, "text/html");
    inside.replaceChildren(...[...part.body.childNodes].map((node) => document.importNode(node, true)));
    if (!dialog.open) dialog.showModal();
    showTimes(inside);
    const first = $("[aria-invalid=true], .fields input, .fields textarea, .fields select", inside) || $("button.primary", inside) || $("a, button", inside);
    first?.focus();
  };
  const failDialog = () => {
    dialog.close();
    toast("The dashboard cannot be reached. Nothing was changed, as far as this page knows.");
  };

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-dialog]");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    link.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(link.href, { headers: { "X-Fragment": "dialog", Accept: "text/html" } });
      if (answer.redirected) location.href = link.href;
      else showDialog(await answer.text());
    } catch {
      failDialog();
    } finally {
      link.removeAttribute("aria-busy");
    }
  });

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("[data-act]") || !inside.contains(form)) return;
    event.preventDefault();
    const button = event.submitter;
    const fields = new URLSearchParams(new FormData(form));
    const plan = button?.hasAttribute("data-plan");
    if (plan) fields.delete("csrf");
    button?.setAttribute("aria-busy", "true");
    if (button) button.disabled = true;
    acting = !plan;
    try {
      const answer = plan
        ? await fetch(`${form.action}?${fields}`, { headers: { "X-Fragment": "dialog", Accept: "text/html" } })
        : await fetch(form.action, { method: "POST", body: fields, headers: { "HX-Request": "true", "X-Fragment": "dialog", Accept: "text/html" } });
      showDialog(await answer.text());
      if (showOutcome()) return; // the browser leaves this page
      acting = false;
      if (stale) refresh();
    } catch {
      acting = false;
      failDialog();
    } finally {
      button?.removeAttribute("aria-busy");
      if (button) button.disabled = false;
    }
  });

  const showOutcome = () => {
    const outcome = $("[data-outcome=ok]", inside);
    if (!outcome) return false;
    const text = $("[data-text]", outcome)?.textContent || "Done.";
    const { task, back } = outcome.dataset;
    dialog.close();
    const target = task || back;
    if (target && target !== here()) {
      if (!task) later(text);
      location.href = target;
      return true;
    }
    toast(text);
    stale = true;
    if (live) return false;
    location.reload();
    return true;
  };

  document.addEventListener("click", (event) => {
    const closer = event.target.closest("[data-close]");
    const box = closer?.closest("dialog") || (event.target.tagName === "DIALOG" ? event.target : null);
    if (!box) return;
    if (closer) event.preventDefault();
    box.close();
  });
  dialog.addEventListener("close", () => inside.replaceChildren());
  $("#help")?.addEventListener("click", () => $("#keys").showModal());

  // A menu closes when the reader clicks elsewhere.
  document.addEventListener("click", (event) => $$("details.pick[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; }));

  // ------------------------------------------------------------------ keys

  let chosen = null;
  const rows = () => $$("[data-row]");
  const nameOf = (row) => row?.id || row?.dataset.id || null;
  const choose = (name, scroll = true) => {
    chosen = name;
    for (const row of rows()) {
      const mine = name !== null && nameOf(row) === name;
      row.classList.toggle("here", mine);
      if (mine) {
        const link = $("a.rowlink", row) || $("a", row);
        if (scroll) {
          row.scrollIntoView({ block: "nearest" });
          link?.focus({ preventScroll: true });
        }
      }
    }
  };
  const step = (by) => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => nameOf(row) === chosen);
    const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
    choose(nameOf(all[next]));
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "Escape") {
      if ($("dialog[open]")) return;
      const menu = $("details.pick[open]");
      if (menu) {
        menu.open = false;
        $("summary", menu).focus();
      } else if (typing) typing.blur();
      else {
        choose(null);
        document.activeElement?.blur();
      }
      return;
    }
    if (typing || $("dialog[open]")) return;
    if (event.key === "/") {
      const field = $("#search");
      if (!field) return;
      event.preventDefault();
      field.focus();
      field.select();
    } else if (event.key === "?") $("#keys").showModal();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "Enter" && chosen && !event.target.closest("a, button, summary")) {
      const row = rows().find((one) => nameOf(one) === chosen);
      ($("a.rowlink", row) || $("a", row))?.click();
    }
  });

  // ------------------------------------------------------------------ search suggestions

  const form = $("form[data-suggest]");
  if (form) {
    const field = $("#search");
    const list = $("#suggestions");
    let asked = 0;
    let timer = 0;
    field.setAttribute("role", "combobox");
    field.setAttribute("aria-controls", list.id);
    field.setAttribute("aria-expanded", "false");
    field.setAttribute("aria-autocomplete", "list");
    const options = () => $$("[role=option]", list);
    const hide = () => {
      asked += 1; // an answer that is still on its way does not open it again
      clearTimeout(timer);
      list.hidden = true;
      field.setAttribute("aria-expanded", "false");
      field.removeAttribute("aria-activedescendant");
    };
    const mark = (at) => {
      options().forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
      const option = options()[at];
      if (option) {
        field.setAttribute("aria-activedescendant", option.id);
        option.scrollIntoView({ block: "nearest" });
      } else field.removeAttribute("aria-activedescendant");
    };
    const take = (option) => {
      field.value = option.dataset.text;
      field.focus();
      hide();
      if (!field.value.endsWith(":")) form.requestSubmit();
      else ask();
    };
    const ask = async () => {
      const mine = ++asked;
      try {
        const url = new URL(form.dataset.suggest, location.href);
        url.searchParams.set("q", field.value);
        const answer = await fetch(url, { headers: { Accept: "application/json" } });
        const found = answer.ok ? (await answer.json()).suggestions || [] : [];
        if (!answer.ok || mine !== asked || document.activeElement !== field) return;
        const chosen = options().find((option) => option.getAttribute("aria-selected") === "true")?.dataset.text;
        list.replaceChildren(...found.slice(0, 12).map((one, i) => {
          const option = document.createElement("div");
          const code = document.createElement("code");
          const label = document.createElement("span");
          option.id = `suggestion-${i}`;
          option.setAttribute("role", "option");
          option.setAttribute("aria-selected", "false");
          option.dataset.text = one.text;
          code.textContent = one.text;
          label.className = "muted";
          label.textContent = one.label || "";
          option.append(code, label);
          return option;
        }));
        list.hidden = !found.length;
        field.setAttribute("aria-expanded", String(found.length > 0));
        mark(options().findIndex((option) => option.dataset.text === chosen));
      } catch {
        hide();
      }
    };
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(ask, 150);
    });
    field.addEventListener("focus", ask);
    field.addEventListener("blur", () => setTimeout(hide, 150));
    field.addEventListener("keydown", (event) => {
      const all = options();
      if (list.hidden || !all.length) return;
      const at = all.findIndex((option) => option.getAttribute("aria-selected") === "true");
      if (event.key === "ArrowDown") mark((at + 1) % all.length);
      else if (event.key === "ArrowUp") mark((at - 1 + all.length) % all.length);
      else if (event.key === "Enter" && at >= 0) take(all[at]);
      else if (event.key === "Escape") hide();
      else return;
      event.preventDefault();
    });
    list.addEventListener("mousedown", (event) => {
      const option = event.target.closest("[role=option]");
      if (!option) return;
      event.preventDefault();
      take(option);
    });
  }

  // Keep the chosen item of a row that scrolls sideways in view on a narrow screen.
  for (const one of $$(".tabs [aria-current], .segments [aria-current]")) {
    const box = one.closest("ul, .segments");
    box.scrollLeft = Math.max(0, one.getBoundingClientRect().left - box.getBoundingClientRect().left - 40);
  }
  window.groupmq = { duration, clock, day };
})();
