export const STYLE = `
:root { color-scheme: light dark; --page: #fbfaf7; --card: #ffffff; --ink: #1c1f23; --quiet: #5d646d; --line: #dedbd3; --ours: #1f6f8b; --baseline: #b9b3a6; --other: #d8d3c7; --met: #2b7a4b; --missed: #b4412f; --dot: #1c1f23; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --card: #1b1f23; --ink: #e8e6e1; --quiet: #9aa1a9; --line: #31363c; --ours: #4fa3c0; --baseline: #5d6268; --other: #44494f; --met: #56b37c; --missed: #e0735f; --dot: #e8e6e1; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 0 0 6px; }
h3 { font-size: 12px; font-weight: 600; letter-spacing: .04em; color: var(--quiet); margin: 18px 0 6px; }
p { margin: 0 0 10px; max-width: 78ch; }
.quiet { color: var(--quiet); }
.score { font-size: 17px; margin: 18px 0 10px; }
.score b { font-variant-numeric: tabular-nums; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 22px 24px; margin: 20px 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-size: 12px; font-weight: 600; color: var(--quiet); padding: 4px 10px 6px 0; white-space: nowrap; }
td { padding: 6px 10px 6px 0; border-top: 1px solid var(--line); vertical-align: middle; }
td small { display: block; color: var(--quiet); font-size: 12.5px; }
td:first-child { min-width: 210px; }
.points td:first-child { min-width: 110px; } .points td small { font-size: 11px; }
th.n, td.n { text-align: right; white-space: nowrap; }
td.n small { white-space: normal; } .points td.n small { white-space: nowrap; }
td.strong { font-weight: 600; }
td.group { padding-top: 16px; font-weight: 600; border-top: 0; }
.yes { color: var(--met); white-space: nowrap; }
.no { color: var(--missed); font-weight: 600; white-space: nowrap; }
.note { border-left: 3px solid var(--ours); padding: 2px 0 2px 12px; }
.wrong { border-left: 3px solid var(--missed); padding: 2px 0 2px 12px; }
svg { display: block; width: 100%; height: auto; }
svg.gauge { width: 150px; height: 20px; }
svg text { fill: var(--ink); font-size: 13px; font-family: inherit; }
svg .tick { fill: var(--quiet); font-size: 11px; }
svg .value { font-variant-numeric: tabular-nums; font-weight: 600; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .bar { stroke: var(--ink); stroke-width: 1.5; }
svg .dot { fill: var(--card); stroke: var(--dot); stroke-width: .8; }
svg .line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
svg .ours.line { stroke: var(--ours); } svg .baseline.line { stroke: var(--baseline); } svg .other.line { stroke: var(--other); }
svg .round { opacity: .6; }
.ours { fill: var(--ours); } .baseline { fill: var(--baseline); } .other { fill: var(--other); } .met { fill: var(--met); } .missed { fill: var(--missed); }
.key { display: flex; flex-wrap: wrap; gap: 6px 18px; font-size: 12.5px; color: var(--quiet); margin-top: 12px; }
.key span::before { content: ""; display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 6px; vertical-align: -1px; background: var(--swatch); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 18px; margin: 0; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
@media print { section { break-inside: avoid; } }
`;
