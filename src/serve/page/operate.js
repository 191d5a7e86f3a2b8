// The operator's page: /status as it is, gateways, pipelines, dead letters. Members of /status that are new get a table too.
import { get, post } from "./api.js";
import { card, facts, notice, problem, table } from "./charts.js";
import { count, duration, words } from "./format.js";
import { coalesce, h } from "./view.js";

const STATUS_MS = 5000;
const LETTERS = 100;
const SILENT_S = 15; // three times the interval in which instances store what they say
const ORDER = ["last_errors", "partitions", "lanes", "rates", "connections"];

export function operate(app) {
    const state = { status: {}, gateways: {}, pipelines: {}, letters: {}, reason: "", chosen: new Set(), asking: null, done: "" };

    const load = (name, path, parameters) => get(path, parameters).then(
        (answer) => { state[name] = { answer }; },
        (error) => { app.failed(error) || (state[name] = { ...state[name], error }); });

    const refresh = coalesce(async () => {
        const wanted = [load("status", "/status")];
        for (const name of ["gateways", "pipelines"]) {
            if (state[name].error?.status !== 501)
                wanted.push(load(name, `/${name}`));
        }
        if (state.letters.page === undefined)
            wanted.push(load("letters", "/dead-letters", { reason: state.reason, limit: LETTERS }));
        await Promise.all(wanted);
        app.draw();
    }, STATUS_MS);
    const timer = setInterval(() => document.hidden || refresh(), STATUS_MS);

    async function more() {
        const before = state.letters.answer;
        const answer = await get("/dead-letters", { reason: state.reason, limit: LETTERS, after: before.next }).catch((error) => app.say(error.message));
        if (answer)
            state.letters = { page: 2, answer: { ...answer, dead_letters: [...before.dead_letters, ...answer.dead_letters] } };
        app.draw();
    }

    // Asks once more before it acts; the question stands where the button was, so the focus stays.
    async function redrive(body, what) {
        if (state.asking !== what) {
            state.asking = what;
            app.draw();
            return;
        }
        state.asking = null;
        try {
            const answer = await post("/dead-letters/redrive", body);
            state.done = `${count(answer.redriven ?? answer.count ?? body.ids?.length ?? 0)} dead letters were moved to the parked receipts; they are tried again now.`;
            state.chosen.clear();
            state.letters = {};
        } catch (error) {
            state.done = error.message;
        }
        app.say(state.done);
        refresh.now();
        app.draw();
    }

    // ---- parts

    function status() {
        const { answer, error } = state.status;
        if (!answer)
            return error ? problem(error) : h("div", { class: "card empty" });
        const { instances = [], ...own } = answer;
        return [error && problem(error), all("Status", own, card), instances.map(instance)];
    }

    // What one daemon says about itself, under its name.
    function instance({ name, at, age_s: age, status: said }) {
        const heard = age > SILENT_S ? h("strong", { class: "bad" }, `Silent for ${duration(age)}. `) : `Heard of ${duration(age)} ago. `;
        const inside = (title, ...content) => [h("h3", null, title), content];
        return card(`Instance ${name}`, h("p", null, heard), all("State", { at, ...said }, inside, `${name}: `));
    }

    // An object of which nothing is known: plain values, then a table for each list of objects, then what is in objects.
    function all(title, object, part, prefix = "") {
        const names = Object.keys(object).sort((a, b) => rank(a) - rank(b));
        const isRows = (value) => Array.isArray(value) && value.length > 0 && typeof value[0] === "object";
        const isPlain = (value) => value === null || typeof value !== "object" || (Array.isArray(value) && !isRows(value));
        const plain = Object.fromEntries(names.filter((name) => isPlain(object[name]) && name !== "last_errors").map((name) => [name, object[name]]));
        return [
            part(title, h("p", { class: "sum" }, readiness(object)), facts(plain)),
            Array.isArray(object.last_errors) && object.last_errors.length === 0 && part("Last errors", notice("None.")),
            names.filter((name) => isRows(object[name])).map((name) => part(words(name), table(`${prefix}${words(name)}`, object[name]))),
            names.filter((name) => !isPlain(object[name]) && !isRows(object[name]))
                .map((name) => part(words(name), group(`${prefix}${words(name)}`, object[name], prefix ? "h4" : "h3"))),
        ];
    }

    // An object with lists of objects inside, such as places: each list is a table.
    function group(name, object, heading) {
        const lists = Object.entries(object).filter(([, value]) => Array.isArray(value) && typeof value[0] === "object");
        const rest = Object.fromEntries(Object.entries(object).filter(([key]) => !lists.some(([list]) => list === key)));
        return [Object.keys(rest).length > 0 && facts(rest), lists.map(([key, rows]) => [h(heading, null, words(key)), table(`${name}: ${key}`, rows)])];
    }

    function simple(title, name, key) {
        const { answer, error } = state[name];
        if (error)
            return error.status === 404 ? null : card(title, problem(error));
        const rows = answer?.[key] ?? [];
        return answer && card(title, rows.length > 0 ? table(title, rows) : notice("None yet."));
    }

    function letters() {
        const { answer, error } = state.letters;
        if (error)
            return card("Dead letters", problem(error));
        if (!answer)
            return card("Dead letters", h("div", { class: "empty" }));
        const rows = answer.dead_letters ?? [];
        return card("Dead letters",
            h("div", { class: "tools" }, h("label", null, "Reason ", h("input", { value: state.reason, autocomplete: "off", spellcheck: "false", onchange: (event) => {
                Object.assign(state, { reason: event.target.value.trim(), letters: {} });
                refresh.now();
            } })), app.may("operate") && buttons(rows)),
            state.done && notice(state.done),
            rows.length === 0 ? notice("None.") : list(rows),
            answer.next && h("p", { class: "buttons" }, h("button", { type: "button", class: "quiet", onclick: more }, "More")));
    }

    function buttons(rows) {
        const some = [...state.chosen].filter((id) => rows.some((row) => row.id === id));
        const button = (text, what, body, off) => h("button", { key: what, type: "button", disabled: off, onclick: () => redrive(body, what) },
            state.asking === what ? `Sure? ${text}` : text);
        return [button(`Try ${count(some.length)} chosen again`, "chosen", { ids: some }, some.length === 0),
            state.reason && button(`Try all with reason ${state.reason} again`, "reason", { reason: state.reason }, rows.length === 0)];
    }

    function list(rows) {
        const mayChoose = app.may("operate") && rows[0].id !== undefined;
        const names = Object.keys(rows[0]).filter((name) => name !== "id");
        const shown = mayChoose ? rows.map((row) => ({ choose: row, ...row })) : rows;
        const choice = (row) => h("input", { type: "checkbox", checked: state.chosen.has(row.id), "aria-label": `Choose dead letter ${row.id}`, onchange: () => {
            state.chosen.has(row.id) ? state.chosen.delete(row.id) : state.chosen.add(row.id);
            state.asking = null;
            app.draw();
        } });
        return table("Dead letters", shown, mayChoose ? ["choose", ...names] : names, { choose: choice });
    }

    return {
        title: "Operate",
        start: refresh,
        stop() {
            clearInterval(timer);
            refresh.stop();
        },
        changed() {},
        again: () => refresh.now(),
        view: () => [h("h1", { key: "h", tabindex: "-1" }, "Operate"), status(), simple("Gateways", "gateways", "gateways"),
            simple("Pipelines", "pipelines", "pipelines"), letters()],
    };
}

const rank = (name) => (ORDER.indexOf(name) + ORDER.length + 1) % (ORDER.length + 1);

function readiness(answer) {
    const ready = answer.ready ?? answer.readiness?.ready;
    if (ready === undefined)
        return "";
    return ready ? [h("strong", null, "Ready.")] : [h("strong", { class: "bad" }, "Not ready: "), (answer.reasons ?? answer.readiness?.reasons ?? []).join(", ")];
}
