// The operator's page: what the database knows, what each daemon says of itself, gateways, pipelines, dead letters. What is new in an answer
// is shown too.
import { get, post } from "./api.js";
import { bars, card, facts, notice, problem, table } from "./charts.js";
import { count, duration, percent, share, visible, words } from "./format.js";
import { coalesce, h } from "./view.js";

const STATUS_MS = 5000;
const LETTERS = 100;
const SILENT_S = 30; // a daemon that has said nothing for so long

export function operate(app) {
    const state = { status: {}, gateways: {}, pipelines: {}, letters: {}, reason: "", chosen: new Set(), asking: null, done: "", stayed: [], before: new Map() };

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
        Object.assign(state, { asking: null, done: "The letters are tried again …" });
        app.draw();
        const sum = { redriven: 0, left: 0 };
        try {
            for (let after; after !== null;) { // an answer says how far it came
                const answer = await post("/dead-letters/redrive", { ...body, after });
                sum.redriven += answer.redriven;
                sum.left += answer.left;
                state.stayed = answer.letters_left;
                after = answer.next;
            }
            state.done = `${count(sum.redriven)} dead letters were moved to the parked receipts; they are tried again now. ${count(sum.left)} stay.`;
            state.chosen.clear();
        } catch (error) {
            state.done = sum.redriven > 0 ? `${count(sum.redriven)} dead letters were moved, then: ${error.message}` : error.message;
        }
        state.letters = {};
        app.say(state.done);
        refresh.now();
        app.draw();
    }

    // ---- parts

    function status() {
        const { answer, error } = state.status;
        if (!answer)
            return error ? problem(error) : h("div", { class: "card empty" });
        const { instances = [], ready, instance, parked_is_estimate, letters_is_estimate, ...rest } = answer;
        Object.assign(rest, { parked: held(rest.parked, parked_is_estimate), letters: held(rest.letters, letters_is_estimate) });
        return [
            error && problem(error),
            card("Status", h("p", { class: "sum" }, readiness(answer, instances)), facts(plainOf(rest))),
            instances.map(daemon),
            Object.entries(rest).filter(([, value]) => isRows(value)).map(([name, rows]) => card(words(name), table(words(name), rows))),
        ];
    }

    // Counted up to some thousands; above it the database only estimates.
    function held(rows, isEstimate) {
        return isEstimate ? `about ${count(rows)} (estimate)` : rows;
    }

    // One instance, as it describes itself: what needs attention first.
    function daemon({ name, age_s, at, status: said }) {
        if (!said)
            return card(`Daemon ${visible(name)}`, notice("It has not said anything yet."));
        const { assignment, lanes = [], connections = [], since_start = {}, last_errors = [], topics = [], readiness: ready, versions, config, kafka, actions, instance, ...rest } = said;
        const part = (title, rows) => rows.length > 0 && [h("h3", null, title), table(`${title} of ${visible(name)}`, rows)];
        return card(`Daemon ${visible(name)}`,
            h("p", { class: "sum" }, age_s > SILENT_S ? h("strong", { class: "bad" }, `Not seen for ${duration(age_s)}. `) : verdict(ready), ` As it said ${duration(age_s)} ago.`),
            facts({ receipts_per_second: rate(name, at, since_start.events_committed), ...plainOf(rest), version: versions?.receiptd, configuration: config?.hash, assignment: assignment?.state }),
            h("h3", null, "Last errors"), last_errors.length > 0 ? table(`Last errors of ${visible(name)}`, last_errors) : notice("None."),
            h("h3", null, "Since its start"), facts(since_start),
            part("Partitions", assignment?.partitions ?? []), part("Lanes", lanes), part("Connections", connections),
            actions && [h("h3", null, "Actions"), facts(plainOf(actions)), Object.entries(actions).filter(([, value]) => isRows(value)).map(([key, rows]) => part(words(key), rows))],
            topics.length > 0 && h("details", null, h("summary", null, "Partitions of all daemons, as it knows them"), table(`Topics of ${visible(name)}`, topics)));
    }

    // From the last two answers that differ in their time; null before there are two.
    function rate(name, at, events) {
        const known = state.before.get(name) ?? {};
        if (known.at !== at && events !== undefined) {
            const seconds = (Date.parse(at) - Date.parse(known.at)) / 1000;
            const speed = seconds > 0 && events >= known.events ? Math.round((events - known.events) / seconds) : null;
            state.before.set(name, { at, events, speed });
        }
        return state.before.get(name)?.speed ?? null;
    }

    // A gateway's share of all receipts and how clean it is; hour by hour below.
    function gateways() {
        const { answer, error } = state.gateways;
        const rows = answer?.gateways ?? [];
        if (error || rows.length === 0)
            return error?.status === 404 ? null : (error || answer) && card("Gateways", error ? problem(error) : notice("None yet."));
        const sums = new Map();
        for (const row of rows) {
            const sum = sums.get(row.gateway) ?? { receipts: 0, duplicates: 0, disorder: 0, unknown: 0 };
            Object.keys(sum).forEach((name) => { sum[name] += row[name] ?? 0; });
            sums.set(row.gateway, sum);
        }
        const total = [...sums.values()].reduce((all, sum) => all + sum.receipts, 0);
        const of = (sum, name) => percent(share(sum[name], sum.receipts));
        const shown = rows.map((row) => ({ ...row, coverage: row.coverage == null ? null : percent(row.coverage) }));
        return card("Gateways", bars([...sums].sort((a, b) => b[1].receipts - a[1].receipts).map(([name, sum]) => ({ key: name, label: visible(name), value: sum.receipts, most: total, tone: "tone-sent",
            note: `${percent(share(sum.receipts, total))} of receipts; of its own ${of(sum, "disorder")} late, ${of(sum, "duplicates")} copies, ${of(sum, "unknown")} of unknown messages` })),
        `Receipts by gateway, the last ${count(answer.hours)} hours`),
        answer.times?.length > 0 && [table("Times to deliver", answer.times),
            h("p", { class: "fine" }, "From sent until delivered, of all messages whose times are known. Each time is the end of a bucket, at most 41 % too long.")],
        h("details", null, h("summary", null, "Hour by hour"), table("Gateways", shown),
            h("p", { class: "fine" }, "Late: of a stage that the message had passed. Contradiction: of another branch than the message's status. Coverage: delivered, by the receipts, of sent. Delay: from the event until it was counted.")));
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
            } })), app.redrives() && buttons(rows)),
            state.done && notice(state.done),
            state.stayed.length > 0 && h("details", null, h("summary", null, "Why letters stay"), table("Letters that stay", state.stayed)),
            rows.length === 0 ? notice("None.") : list(rows),
            answer.next && h("p", { class: "buttons" }, h("button", { type: "button", class: "quiet", onclick: more }, "More")));
    }

    function buttons(rows) {
        const some = [...state.chosen].filter((id) => rows.some((row) => row.id === id));
        const button = (text, what, body, off) => h("button", { key: what, type: "button", disabled: off, onclick: () => redrive(body, what) },
            state.asking === what ? `Sure? ${text}` : text);
        return [rows.length > 0 && button(`Try ${count(some.length)} chosen again`, "chosen", { ids: some }, some.length === 0),
            state.reason && button(`Try all with reason ${state.reason} again`, "reason", { reason: state.reason }, rows.length === 0)];
    }

    function list(rows) {
        const mayChoose = app.redrives();
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
        view: () => [h("h1", { key: "h", tabindex: "-1" }, "Operate"), status(), gateways(),
            simple("Pipelines", "pipelines", "pipelines"), letters()],
    };
}

const isRows = (value) => Array.isArray(value) && value.length > 0 && typeof value[0] === "object";
const plainOf = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => !isRows(value) && !(Array.isArray(value) && value.length === 0)));

function verdict(ready) {
    return ready?.ready ? h("strong", null, "Ready.") : [h("strong", { class: "bad" }, "Not ready: "), (ready?.reasons ?? []).join(", "), "."];
}

// What is ready, the daemons say; without their word only how many are connected is known.
function readiness(answer, instances) {
    const good = instances.filter((one) => one.age_s <= SILENT_S && one.status?.readiness?.ready).length;
    if (instances.length > 0)
        return h("strong", { class: good < instances.length ? "bad" : null }, `${count(good)} of ${count(instances.length)} daemons are ready.`);
    const connected = answer.daemons?.length ?? 0;
    return h("strong", { class: connected > 0 ? null : "bad" }, connected > 0 ? `Daemons connected: ${count(connected)}.` : "No daemon is connected to the database.");
}
