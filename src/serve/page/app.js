// The frame of all pages: which page, the header, the stream with its state, the reader's token.
import { Stream, decoded, get, hasToken, link, setToken } from "./api.js";
import { campaign } from "./campaign.js";
import { campaigns } from "./campaigns.js";
import { notice } from "./charts.js";
import { duration, time, zone } from "./format.js";
import { operate } from "./operate.js";
import { support } from "./support.js";
import { h, patch } from "./view.js";

const THEMES = [["", "as the system"], ["light", "light"], ["dark", "dark"]];
const BEHIND_S = 3; // less is the normal way of a receipt
const HIDDEN_MS = 30_000; // a page that nobody sees asks for nothing
const POLL_MS = 5000; // where there is no stream

const main = document.getElementById("main"), top_ = document.getElementById("top");
const live = { state: "connecting", health: null, heard: null, problem: null };
let page = null, me = null, stream = null, needsToken = null, spoken = "", frame = 0, hiddenTimer = 0, pollTimer = 0;

// What pages may use.
const app = {
    draw() {
        if (!frame)
            frame = requestAnimationFrame(app.drawNow);
    },
    drawNow() {
        cancelAnimationFrame(frame);
        frame = 0;
        patch(top_, header());
        patch(main, needsToken ? tokenForm() : [page.view(), h("p", { class: "fine zone", key: "zone" }, `Times are in ${zone}.`),
            h("p", { class: "unseen", key: "say", role: "status" }, spoken)]);
        document.title = `${page.title} · receiptd`;
        if (!needsToken)
            page.drawn?.();
    },
    // True if the error was dealt with here: the reader has to show a token.
    failed(error) {
        if (error.status !== 401)
            return false;
        needsToken = error;
        stream?.close();
        app.draw();
        return true;
    },
    say(text) {
        spoken = text;
        app.draw();
    },
    may: (scope) => me !== null && me.link == null && me.scopes.includes(scope),
    redrives: () => me?.redrive === true,
    // Another state of the same page, to which one can come back.
    step() {
        keep();
        history.pushState({ entry: entry = nextEntry() }, "", location.pathname + location.search);
    },
    // Where one is, without a step.
    place: (path) => history.replaceState(history.state, "", path),
};

// ---- which page

// What a page shows is kept for the case that somebody comes back to it: searches hold personal data, so they stay out of the address.
const kept = new Map();
const nextEntry = () => `${Date.now()}-${kept.size}`;
let entry = history.state?.entry ?? nextEntry();
const keep = () => page.keep && kept.set(entry, { ...page.keep(), scroll: scrollY });

function route(before) {
    const [, first, rest] = /^\/([^/]*)\/?(.*)$/.exec(location.pathname);
    if (first === "" && me?.link?.campaign != null)
        return campaign(app, me.link.campaign);
    if (first === "")
        return campaigns(app, before);
    if (first === "campaign" && rest !== "")
        return campaign(app, decoded(rest));
    return { support, operate }[first]?.(app, before) ?? nowhere();
}

function nowhere() {
    return { title: "No such page", start() {}, stop() {}, changed() {}, again() {},
        view: () => [h("h1", { key: "h", tabindex: "-1" }, "No such page"), notice("The address leads nowhere."), h("p", null, h("a", { href: "/" }, "To the campaigns"))] };
}

function open(focus, before) {
    page?.stop();
    patch(main, []);
    page = route(before);
    connect();
    page.start();
    app.drawNow();
    if (focus)
        main.querySelector("h1")?.focus({ preventScroll: true });
    scrollTo(0, before?.scroll ?? 0);
}

function go(path) {
    const [place, hash] = path.split("#");
    keep();
    history.pushState({ entry: entry = nextEntry() }, "", place + location.search + (hash ? `#${hash}` : ""));
    open(true);
}

addEventListener("popstate", (event) => {
    keep();
    entry = event.state?.entry ?? nextEntry();
    history.replaceState({ entry }, "");
    open(true, kept.get(entry));
});
addEventListener("reorder", () => app.draw()); // of a table
addEventListener("click", (event) => {
    const anchor = event.target.closest?.("a[href]");
    if (!anchor || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || anchor.target || anchor.hasAttribute("download"))
        return;
    const path = anchor.getAttribute("href");
    if (path === "#main") { // not by the address: that would open the page again
        event.preventDefault();
        main.focus();
    }
    if (!path.startsWith("/") || path.startsWith("/api/"))
        return;
    event.preventDefault();
    go(path);
});

// ---- the stream

function connect() {
    stream?.close();
    clearInterval(pollTimer);
    Object.assign(live, { state: "connecting", problem: null });
    stream = new Stream(page.stream ?? null, onEvent, onState, onHeard);
}

// Until the database is away, whatever the server says means that the figures are of now.
function onHeard() {
    if (!live.health || !databaseIsDown(live.health))
        live.heard = new Date();
}

function onEvent(name, data) {
    if (name === "campaign" && data.campaign_id === null)
        page.again(); // the stream has missed something
    else if (name === "campaign")
        page.changed(data.campaign_id, data);
    else if (name === "health")
        onHealth(data);
}

function onHealth(health) {
    const recovered = isTrouble(live.health) && !isTrouble(health);
    live.health = health;
    if (recovered)
        page.again();
    app.draw();
}

function onState(state, problem) {
    if (state === "live")
        page.again(); // what happened before, the stream does not tell
    clearInterval(pollTimer);
    if (state === "refused" && problem.status === 401)
        app.failed(problem);
    else if (state === "refused" || state === "busy")
        pollTimer = setInterval(() => document.hidden || page.again(), POLL_MS);
    Object.assign(live, { state, problem });
    app.draw();
}

document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) {
        hiddenTimer = setTimeout(() => {
            stream?.close();
            stream = null;
        }, HIDDEN_MS);
    } else if (!stream && page && !needsToken) {
        connect();
        page.again();
    }
});

// A browser keeps a page that was left, and its stream with it; it has six connections for all pages of one server.
addEventListener("pagehide", () => {
    stream?.close();
    stream = null;
});
addEventListener("pageshow", (event) => {
    if (event.persisted && page && !needsToken)
        connect();
});

const isTrouble = (health) => health != null && (!health.ok || health.behind_s > BEHIND_S || databaseIsDown(health));
const databaseIsDown = (health) => health.database === false || ["down", "lost", "error", "unreachable"].includes(health.database);

function pulse() {
    const last = live.heard ? `, last figures of ${time(live.heard)}` : "";
    if (live.state === "lost")
        return ["bad", `connection lost${last}`];
    if (live.state === "busy")
        return ["warn", `no live updates: ${live.problem.message.replace(/[.]$/, "")}${last}`];
    if (live.state === "connecting")
        return ["", `connecting${last}`];
    if (live.state === "refused")
        return ["warn", `no live updates, refreshed every ${POLL_MS / 1000} s`];
    if (live.health && databaseIsDown(live.health))
        return ["bad", `the database does not answer${last}`];
    if (live.health?.behind_s > BEHIND_S)
        return ["warn", `database ${duration(live.health.behind_s)} behind`];
    if (isTrouble(live.health))
        return ["warn", "receiptd reports trouble"];
    return ["good", "live"];
}

// ---- the header

function header() {
    const [tone, text] = pulse();
    const here = location.pathname;
    const item = (path, name) => h("a", { href: path, "aria-current": here === path ? "page" : null }, name);
    const isLink = me?.link != null;
    return [
        h("a", { class: "brand", href: "/" }, "receiptd"),
        h("nav", { "aria-label": "Pages" }, !isLink && [item("/", "Campaigns"), app.may("support") && item("/support", "Support"),
            app.may("operate") && item("/operate", "Operate")]),
        h("p", { class: `pulse ${tone}`, role: "status" }, text),
        h("label", { class: "theme" }, "Theme ",
            h("select", { value: document.documentElement.dataset.theme ?? "", onchange: setTheme }, THEMES.map(([value, name]) => h("option", { value }, name)))),
        hasToken() && h("button", { type: "button", class: "quiet", onclick: leave }, "Sign out"),
    ];
}

function setTheme(event) {
    const theme = event.target.value;
    try {
        if (theme)
            localStorage.setItem("theme", theme);
        else
            localStorage.removeItem("theme");
    } catch {
        // It holds until the page is left.
    }
    if (theme)
        document.documentElement.dataset.theme = theme;
    else
        delete document.documentElement.dataset.theme;
    app.draw();
}

// ---- the token

function leave() {
    setToken(null);
    location.reload();
}

function tokenForm() {
    const submit = (event) => {
        event.preventDefault();
        setToken(new FormData(event.currentTarget).get("token").trim());
        needsToken = null;
        begin(true);
    };
    return h("form", { class: "card token", key: "token", onsubmit: submit },
        h("h1", { key: "h", tabindex: "-1" }, "Token"),
        link !== null ? notice("This link is not valid, or its time is over.", "bad") : hasToken() && notice("The server does not accept this token.", "bad"),
        h("p", null, "The server asks for a token. It is kept in this tab until you close it."),
        h("label", { class: "wide" }, "Token ", h("input", { name: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false" })),
        h("button", { type: "submit" }, "Go on"));
}

// Only a signed link has to wait for /me, which says where it leads.
async function begin(focus) {
    if (link === null)
        open(focus);
    try {
        me = await get("/me");
    } catch (error) {
        if (app.failed(error)) {
            app.drawNow();
            main.querySelector("input")?.focus();
            return;
        }
    }
    if (link === null)
        app.draw();
    else
        open(focus);
}

page = nowhere();
page.view = () => [];
page.title = "receiptd";
history.replaceState({ entry }, "");
app.drawNow();
begin(false);
