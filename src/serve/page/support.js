// Support: what happened to one message, in words. Found by the message's id, by a gateway's id, or by the customer.
import { decoded, get, hasAddress, segment } from "./api.js";
import { card, facts, notice, problem, table } from "./charts.js";
import { NONE, time, visible, words, zone } from "./format.js";
import { h } from "./view.js";

const EFFECTS = {
    applied: "Changed the message.", duplicate: "Duplicate, no change.",
    stale: "Late, no change: the message had passed this stage.",
    flagged: "New flag, same status.", waited: "It found no message, and waited for one.",
    part: "It is of one part. A long message is delivered when all its parts are.",
    refused: "It was refused; see the dead letters.",
    beside: "It waited with other receipts of the message.",
    lost: "It contradicted a status of higher priority, which stayed.", waiting: "It waits: the platform has not inserted the message yet.",
    woken: "It waited for the message, and was applied when the message came.", dead: "It could not be applied; see the dead letters.",
    expired: "No receipt came in time, so the message expired.",
};

export function support(app, before) {
    const state = { text: decoded(location.hash.slice(1)), asked: "", message: null, list: null, error: null, busy: false, ...before };

    // A path cannot hold every id; the search by q can.
    async function find(text) {
        if (hasAddress(text)) {
            const message = await get(`/messages/${segment(text)}`).catch(ignore404);
            if (message)
                return { message };
        }
        const byId = (await get("/messages", { q: text }).catch(ignore404))?.messages ?? [];
        if (byId.length > 0)
            return one(byId);
        const answer = await get("/messages", { customer: text });
        return one(answer.messages ?? []);
    }

    async function one(messages) {
        if (messages.length !== 1 || !hasAddress(messages[0].message_id))
            return { list: messages };
        return { message: await get(`/messages/${segment(messages[0].message_id)}`) };
    }

    async function look(text) {
        Object.assign(state, { asked: text, message: null, list: null, error: null, busy: true });
        app.draw();
        try {
            const found = await find(text);
            if (state.asked === text)
                Object.assign(state, found);
        } catch (error) {
            if (state.asked !== text || app.failed(error))
                return;
            state.error = error;
        }
        state.busy = false;
        // Only a message's id may stand in the address: it is no personal data.
        app.place(location.pathname + location.search + (state.message ? `#${segment(state.message.message_id)}` : ""));
        app.draw();
        app.say(state.message ? `Message found: ${words(state.message.status_name ?? state.message.status)}` : state.list ? `${state.list.length} messages` : "Nothing found");
    }

    const submit = (event) => {
        event.preventDefault();
        const text = state.text.trim();
        if (!text)
            return;
        if (state.asked)
            app.step();
        look(text);
    };

    function result() {
        if (state.busy)
            return notice("Looking…");
        if (state.error)
            return state.error.status === 404 ? notice(`Nothing is known of “${visible(state.asked)}”.`)
                : state.error.status === 501 || state.error.status === 400 ? [notice(`No message has the id “${visible(state.asked)}”.`), notice(state.error.detail || state.error.title)] : problem(state.error);
        if (state.message)
            return message(state.message);
        if (state.list)
            return state.list.length === 0 ? notice(`Nothing is known of “${visible(state.asked)}”.`) : many(state.list);
        return notice("Paste the id of a message, the id that the gateway gave it, or a customer's id.");
    }

    function many(messages) {
        const open_ = (one) => (hasAddress(one.message_id) ? h("a", { href: `/support#${segment(one.message_id)}` }, visible(one.message_id)) : visible(one.message_id));
        const rows = messages.map((one) => ({ message: one.message_id, campaign: one.campaign_id, ...one, status: words(nameOf(one)) }));
        return card("Messages", table("Messages", rows, ["message", "campaign", "status", "status_at"], { message: open_ }));
    }

    return {
        title: "Support",
        start: () => state.text && !(state.message || state.list || state.error) && look(state.text),
        stop() {},
        changed() {},
        again() {},
        keep: () => ({ text: state.asked || state.text, asked: state.asked, message: state.message, list: state.list, error: state.error }),
        view: () => [
            h("h1", { key: "h", tabindex: "-1" }, "What happened to a message?"),
            h("form", { class: "tools", key: "form", onsubmit: submit, role: "search" },
                h("label", { class: "wide" }, "Message id or customer ",
                    h("input", { type: "search", value: state.text, autocomplete: "off", spellcheck: "false", maxlength: 255, oninput: (event) => { state.text = event.target.value; } })),
                h("button", { type: "submit" }, "Look up")),
            h("div", { key: "result", class: "result" }, result()),
        ],
    };
}

const nameOf = (message) => message.status_name ?? message.status;
const ignore404 = (error) => {
    if (error.status !== 404)
        throw error;
    return null;
};

function message(one) {
    const name = nameOf(one);
    return [
        card("Now", h("p", { class: "sum" }, h("strong", null, name == null ? "The message has no row yet" : words(name)), name == null ? "" : ` since ${time(one.status_at)}`, h("small", null, ` ${zone}`)),
            steps(one), facts({ message: one.message_id, campaign: hasAddress(one.campaign_id ?? "") ? h("a", { href: `/campaign/${segment(one.campaign_id)}` }, visible(one.campaign_id)) : one.campaign_id,
                organisation: one.org_id, ...whose(one), flags: one.flags?.length > 0 ? one.flags.map(words) : null, updated_at: one.updated_at })),
        waiting(one),
        receipts(one.receipts ?? []),
        (one.actions ?? []).length > 0 && card("Actions", table("Actions of this message", one.actions)),
    ];
}

// Left out where nothing says it. Parts: "2 of 3 delivered (1, 3)".
function whose(one) {
    const done = one.parts?.delivered;
    return { customer: one.customer, "logical message": one.logical,
        parts: done && `${done.length} of ${one.parts.parts} delivered (${done.join(", ")})` };
}

function steps(one) {
    const path = one.path ?? [];
    return path.length === 0 ? null : h("ol", { class: "steps", "aria-label": "Path of the message" }, path.map((name, index) =>
        h("li", { key: name, "aria-current": index === path.length - 1 ? "step" : null }, words(name))));
}

function waiting(one) {
    const letters = one.dead_letters ?? [], parked = one.parked ?? [];
    return [
        parked.length > 0 && card("Parked receipts", h("p", null, "They wait for the platform to insert the message, for the alias of its gateway's id, or for other receipts of the message."), table("Parked receipts", parked)),
        letters.length > 0 && card("Dead letters", h("ul", { class: "plain" }, letters.map((letter) => h("li", null,
            h("strong", null, words(letter.reason ?? "")), `: ${visible(letter.detail ?? "")}`, h("small", null, ` ${time(letter.dead_at ?? letter.at)}`))))),
    ];
}

// Why, and through whom: what the receipt says beside its status.
function said(row) {
    const kind = row.reason_class ? `(${words(row.reason_class)})` : "";
    const texts = [
        row.reason || kind ? `Reason: ${row.reason ?? ""} ${kind}` : "",
        row.gateway ? `by ${row.gateway}` : "",
        row.parts ? `part ${row.part} of ${row.parts}` : "",
        row.event_id ? `event ${row.event_id}` : "",
    ].filter(Boolean);
    return texts.length > 0 && h("span", { class: "said" }, visible(texts.join(" · ")));
}

const change = (row) => (row.old != null && row.new != null && row.old !== row.new ? `${words(row.old)} → ${words(row.new)}` : "");

function receipts(rows) {
    if (rows.length === 0)
        return card("Receipts", notice("No receipts are known. What each one did is kept with timeline.retention."));
    return card("Receipts", h("ol", { class: "receipts" }, rows.map((row) => h("li", { class: `effect-${row.effect}` },
        h("span", { class: "when" }, time(row.at ?? row.recorded_at)),
        h("strong", null, words(row.status_name ?? row.status)),
        h("span", null, EFFECTS[row.effect] ?? words(row.effect ?? ""), h("small", null, ` ${row.why ? visible(row.why) : change(row)}`)),
        h("small", { class: "fine" }, row.recorded_at ? `recorded ${time(row.recorded_at)}` : NONE),
        said(row)))));
}
