// The way to /api/v1: requests with the reader's token or signed link, problems as errors, and the stream of changes. EventSource cannot
// send a token, so the stream is read with fetch.
const BASE = "/api/v1";
const SILENCE_MS = 40_000; // the server says something every 15 s
const PATIENCE_MS = 20_000;
const LONGEST_PAUSE_MS = 15_000;
const REFUSALS = [401, 403, 404, 501];

export const link = new URLSearchParams(location.search).get("link");
let token = sessionStorage.getItem("token");

export const hasToken = () => token !== null;
export function setToken(value) {
    token = value;
    if (value === null)
        sessionStorage.removeItem("token");
    else
        sessionStorage.setItem("token", value);
}

export class Problem extends Error {
    constructor(status, title, detail) {
        super(detail || title);
        Object.assign(this, { status, title, detail });
    }
}

// It may be answered when it is asked again.
export const isPassing = (error) => error.status === 0 || error.status === 429 || error.status >= 500;

export function address(path, parameters) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...parameters, link })) {
        if (value !== null && value !== undefined && value !== "")
            query.set(name, value);
    }
    const text = query.toString();
    return BASE + path + (text ? `?${text}` : "");
}

// One segment of a path. A browser takes "." and ".." for directories, in any spelling: such an id has no address. Half a character has none either.
export const segment = (id) => encodeURIComponent(String(id).replace(/\p{Surrogate}/gu, "\u{fffd}"));
// What people type into the address bar need not be well-formed.
export function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}
export const hasAddress = (id) => id !== "" && id !== "." && id !== "..";

async function request(path, parameters, options) {
    const headers = { ...options?.headers };
    if (token !== null)
        headers.Authorization = `Bearer ${token}`;
    let response;
    try {
        response = await fetch(address(path, parameters), { cache: "no-cache", credentials: "same-origin", ...options, headers });
    } catch (error) {
        throw error.name === "AbortError" ? error : new Problem(0, "No answer", "The server does not answer.");
    }
    if (!response.ok)
        throw await problemOf(response);
    return response;
}

async function problemOf(response) {
    const body = await response.json().catch(() => ({}));
    return new Problem(response.status, body.title || `Status ${response.status}`, body.detail || "");
}

export async function get(path, parameters) {
    const response = await request(path, parameters, { signal: AbortSignal.timeout(PATIENCE_MS) });
    return response.json();
}

export async function post(path, body) {
    const options = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    const response = await request(path, {}, { ...options, signal: AbortSignal.timeout(PATIENCE_MS) });
    return response.json().catch(() => ({}));
}

// Under the name that the server gives it.
export async function download(path, parameters) {
    const response = await request(path, parameters);
    const [, name] = /filename\*=UTF-8''([^;]+)/.exec(response.headers.get("Content-Disposition")) ?? [];
    save(await response.blob(), decoded(name ?? ""));
}

export function save(blob, name) {
    const url = URL.createObjectURL(blob);
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = name;
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// ---- the stream

// Calls onEvent(name, data), onState("connecting" | "live" | "busy" | "lost" | "refused", problem), and onHeard() for all that comes, be it a
// comment. Connects again by itself, unless refused. A stream that has ended is not yet a lost connection: servers end streams, and start again.
// It is lost when a new one gets no answer; "busy": the answer is that there is none now.
export class Stream {
    constructor(campaign, onEvent, onState, onHeard) {
        Object.assign(this, { campaign, onEvent, onState, onHeard, closed: false, isOpen: false, retryMs: 2000, failures: 0, wake: null, abort: null });
        this.retryNow = () => this.wake?.();
        addEventListener("online", this.retryNow);
        this.run();
    }

    close() {
        this.closed = true;
        removeEventListener("online", this.retryNow);
        this.abort?.abort();
        this.wake?.();
    }

    say(state, problem) {
        if (!this.closed)
            this.onState(state, problem);
    }

    async run() {
        this.say("connecting");
        while (!this.closed) {
            this.isOpen = false;
            const error = await this.connect().catch((failure) => failure);
            if (REFUSALS.includes(error?.status)) {
                this.say("refused", error);
                return;
            }
            this.say(this.isOpen ? "connecting" : error?.status > 0 ? "busy" : "lost", error);
            await this.pause();
        }
    }

    async connect() {
        this.abort = new AbortController();
        let watch = setTimeout(() => this.abort.abort(), PATIENCE_MS);
        try {
            const headers = { Accept: "text/event-stream" };
            const response = await request("/stream", { campaign: this.campaign }, { signal: this.abort.signal, cache: "no-store", headers });
            const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
            this.isOpen = true;
            this.say("live");
            for (let rest = ""; ;) {
                clearTimeout(watch);
                watch = setTimeout(() => this.abort.abort(), SILENCE_MS);
                const { done, value } = await reader.read();
                if (done || this.closed)
                    return;
                this.onHeard();
                rest = this.take(rest + value);
            }
        } finally {
            clearTimeout(watch);
        }
    }

    // Hands over the complete events of the text, and returns the rest.
    take(text) {
        const parts = text.replace(/\r\n?/g, "\n").split("\n\n");
        const rest = parts.pop();
        for (const part of parts)
            this.event(part);
        return rest;
    }

    event(text) {
        let name = "message", data = "";
        for (const line of text.split("\n")) {
            const [, field, value] = /^([a-z]+):? ?(.*)$/.exec(line) ?? [];
            if (field === "event")
                name = value;
            else if (field === "data")
                data += value;
            else if (field === "retry" && Number(value) > 0)
                this.retryMs = Number(value);
        }
        this.failures = 0;
        if (data && !this.closed)
            this.onEvent(name, JSON.parse(data));
    }

    // Longer after each failure, and of random length: a server that starts again is not met by all viewers at once.
    pause() {
        const longest = Math.min(this.retryMs * 2 ** this.failures++, LONGEST_PAUSE_MS);
        return new Promise((resolve) => {
            const timer = setTimeout(resolve, longest * (0.5 + Math.random() / 2));
            this.wake = () => {
                clearTimeout(timer);
                resolve();
            };
        });
    }
}
