// Zoom, search and details for a picture that is complete without them.
(function () {
    "use strict";
    const svg = document.documentElement;
    const row = Number(svg.dataset.row), letter = Number(svg.dataset.letter), margin = 10;
    const inner = svg.viewBox.baseVal.width - 2 * margin;
    const details = document.getElementById("details");
    const search = document.getElementById("search"), reset = document.getElementById("reset");
    const frames = Array.from(document.querySelectorAll("#frames > g"), function (group) {
        const rect = group.querySelector("rect"), text = group.querySelector("text");
        const title = group.querySelector("title").textContent;
        return {
            group: group, rect: rect, text: text, title: title, name: title.split("\n")[0],
            from: (Number(rect.getAttribute("x")) - margin) / inner,
            share: Number(rect.getAttribute("width")) / inner,
            depth: Number(rect.getAttribute("y")) / row
        };
    });
    const slack = 0.01 / inner;

    // As much of the name as there is room for.
    function fitting(name, width) {
        const room = Math.floor((width - 8) / letter);
        if (name.length <= room) return name;
        return room >= 3 ? name.slice(0, room - 1) + "\u2026" : "";
    }

    function place(frame, x, width) {
        frame.group.style.display = width < 0.1 ? "none" : "";
        frame.rect.setAttribute("x", x.toFixed(2));
        frame.rect.setAttribute("width", Math.max(width, 0).toFixed(2));
        frame.text.setAttribute("x", (x + 4).toFixed(2));
        frame.text.textContent = fitting(frame.name, width);
    }

    // Makes a frame as wide as the picture; its callers go with it.
    function zoom(chosen) {
        const end = chosen.from + chosen.share;
        frames.forEach(function (frame) {
            const isCaller = frame.depth <= chosen.depth
                && frame.from <= chosen.from + slack && frame.from + frame.share >= end - slack;
            const isInside = frame.depth >= chosen.depth
                && frame.from >= chosen.from - slack && frame.from + frame.share <= end + slack;
            frame.group.classList.toggle("outer", isCaller && frame !== chosen && frame.depth < chosen.depth);
            if (isCaller) place(frame, margin, inner);
            else if (isInside) place(frame, margin + (frame.from - chosen.from) / chosen.share * inner, frame.share / chosen.share * inner);
            else frame.group.style.display = "none";
        });
        reset.classList.toggle("off", chosen.depth === frames[0].depth);
    }

    // Marks names that match, and says how much they take together: one inside another counts once.
    function mark(pattern) {
        let found = null;
        try { found = pattern ? new RegExp(pattern, "i") : null; } catch (error) { details.textContent = String(error); return; }
        const marked = frames.filter(function (frame) {
            const matches = found !== null && frame.depth !== frames[0].depth && found.test(frame.name);
            frame.group.classList.toggle("found", matches);
            return matches;
        });
        marked.sort(function (one, other) { return one.from - other.from || one.depth - other.depth; });
        let share = 0, end = -1;
        marked.forEach(function (frame) {
            if (frame.from >= end - slack) { share += frame.share; end = frame.from + frame.share; }
        });
        search.textContent = found === null ? "search"
            : "search: " + pattern + " \u2013 " + (share * 100).toFixed(2) + " %";
    }

    function ask() {
        const pattern = window.prompt("Functions that match (a regular expression; nothing clears the search)", "");
        if (pattern !== null) mark(pattern);
    }

    frames.forEach(function (frame) {
        frame.group.addEventListener("click", function () { zoom(frame); });
        frame.group.addEventListener("mouseenter", function () { details.textContent = frame.title.replace(/\n/g, "   "); });
    });
    search.addEventListener("click", ask);
    reset.addEventListener("click", function () { zoom(frames[0]); });
    window.addEventListener("keydown", function (event) {
        if (event.key === "Escape") { zoom(frames[0]); mark(""); }
        if (event.key === "/" || (event.key === "f" && (event.ctrlKey || event.metaKey))) { event.preventDefault(); ask(); }
    });
    // A link may say what to look for: flame.svg#search=gemm
    const asked = /[#&]search=([^&]*)/.exec(window.location.hash);
    if (asked) mark(decodeURIComponent(asked[1]));
})();
