// Sets the chosen theme before the first paint. Without a choice the system's holds.
"use strict";
try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark")
        document.documentElement.dataset.theme = theme;
} catch {
    // Storage may be forbidden; the system's theme is good enough.
}
