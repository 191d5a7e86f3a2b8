// Numbers, times and names for people. Numbers and times follow the reader's locale.
const plain = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const oneDigit = new Intl.NumberFormat(undefined, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const dayAndClock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const dayAndMinute = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" });
const calendar = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });

export const NONE = "–";
export const count = (value) => (value == null ? NONE : plain.format(value));
export const short = (value) => (value == null ? NONE : compact.format(value));

// Never rounds to 100 % what is less, nor to 0 % what is more.
export function percent(value) {
    if (value == null || !Number.isFinite(value))
        return NONE;
    if (value > 0 && value < 0.001)
        return `< ${oneDigit.format(0.001)}`;
    if (value < 1 && value > 0.999)
        return oneDigit.format(0.999);
    return oneDigit.format(value);
}
export const share = (part, whole) => (whole > 0 ? part / whole : null);

const isToday = (date) => date.toDateString() === new Date().toDateString();
export function time(text) {
    if (text == null)
        return NONE;
    const date = new Date(text);
    if (Number.isNaN(date.getTime()))
        return String(text);
    return (isToday(date) ? clock : dayAndClock).format(date);
}
// "Europe/Berlin (UTC+2)"
function nameZone() {
    const minutes = -new Date().getTimezoneOffset(), rest = Math.abs(minutes) % 60;
    const { timeZone } = clock.resolvedOptions();
    const offset = `UTC${minutes < 0 ? "−" : "+"}${Math.floor(Math.abs(minutes) / 60)}${rest ? `:${String(rest).padStart(2, "0")}` : ""}`;
    return timeZone === "UTC" ? timeZone : `${timeZone} (${offset})`;
}
export const zone = nameZone();

// A day of the calendar, which is the same everywhere: "2026-03-01".
export function day(text) {
    const [year, month, date] = text.split("-").map(Number);
    return calendar.format(new Date(year, month - 1, date));
}

export const minuteOf = (text, withDay) => (withDay ? dayAndMinute : minute).format(new Date(text));

export function duration(seconds) {
    if (seconds == null)
        return NONE;
    if (seconds < 1)
        return `${plain.format(Math.round(seconds * 1000))} ms`;
    const steps = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const [size, unit] = steps.find(([size]) => seconds >= 2 * size || size === 1);
    return `${plain.format(Math.round(seconds / size))} ${unit}`;
}

export function bytes(value) {
    const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let index = 0;
    for (; value >= 1024 && index < units.length - 1; index++)
        value /= 1024;
    return `${plain.format(Math.round(value * 10) / 10)} ${units[index]}`;
}

const STATUS_WORDS = {
    IN_GTW: "With the gateway", SUBMIT_FAILED: "Not submitted", BOUNCED_SOFT: "Bounced, soft", BOUNCED_HARD: "Bounced, hard",
    BOUNCED_HARD_EMAIL: "Bounced, hard, by e-mail", MACHINE_OPEN: "Opened by a machine", BOT_CLICK: "Clicked by a bot",
    AUTORESPONDED: "Answered automatically", RESUBSCRIBED: "Subscribed again", UNKNOWN: "Unknown, no final receipt",
};
export function words(name) {
    const text = String(name).replace(/_/g, " ").toLowerCase();
    return STATUS_WORDS[name] ?? text.charAt(0).toUpperCase() + text.slice(1);
}

// As the denominator of a share: "of sent".
const BASES = { IN_GTW: "those with the gateway" };
export const base = (name) => BASES[name] ?? words(name).toLowerCase();

// Ids come from others. Characters that cannot be seen, or that turn the order of the text, are shown by their number.
export const visible = (text) => String(text).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
