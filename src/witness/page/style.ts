import { COLOURS } from './colours.js';

const variables = (theme: Readonly<Record<string, string>>): string =>
  Object.entries(theme)
    .map(([name, value]) => `--${name}:${value}`)
    .join(';');

/** The only style sheet of the page. Print always uses the light colours. */
export const PAGE_STYLE = `
:root{color-scheme:light dark;${variables(COLOURS.light)}}
@media screen and (prefers-color-scheme:dark){:root{${variables(COLOURS.dark)}}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 ui-sans-serif,system-ui,"Segoe UI","Helvetica Neue",Arial,"Liberation Sans",sans-serif;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
main{max-width:62rem;margin:0 auto;padding:2.5rem 1.25rem 5rem}
h1,h2,h3,p,ul,dl,dd{margin:0;padding:0;min-width:0}
ul{list-style:none}
h1{font-size:clamp(1.75rem,1.3rem + 2vw,2.5rem);line-height:1.15;letter-spacing:-.015em;font-weight:650;text-wrap:balance}
h2{margin:3rem 0 .9rem;padding-top:.9rem;border-top:1px solid var(--line);font-size:1.1875rem;line-height:1.3;letter-spacing:-.005em;font-weight:650}
h3{font-size:1rem;line-height:1.4;font-weight:600}
h3 span,small,.soft,.lead,.more{color:var(--soft);font-weight:400}
small,.soft,.more{font-size:.8125rem}
.lead{max-width:44rem;margin-bottom:.9rem;font-size:.9375rem}
.soft,.more{margin-top:.6rem;max-width:44rem}
code{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;font-size:.8125em;overflow-wrap:anywhere}
.kind{margin-bottom:.5rem;color:var(--soft);font-size:.875rem}
.identity{display:flex;flex-wrap:wrap;gap:.15rem 1.25rem;margin-top:.6rem;color:var(--soft);font-size:.875rem}
.statements{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:.75rem;margin-top:1.5rem}
.decision{padding:1rem 1.25rem;border-radius:10px;border:1px solid var(--line);border-left:5px solid var(--soft);background:var(--card)}
.decision b{display:block;font-size:1.1875rem;line-height:1.35}
.decision p{margin-top:.2rem;max-width:46rem;text-wrap:pretty}
.decision.good{background:var(--good-tint);border-color:var(--good)}
.decision.good b{color:var(--good)}
.decision.review,.decision.bad{background:var(--alert-tint);border-color:var(--alert-line)}
.decision.review b,.decision.bad b{color:var(--alert)}
.banner{margin-top:1rem;padding:.75rem 1.25rem;border-radius:10px;border:2px dashed var(--alert-line);color:var(--alert);font-weight:600}
.note{max-width:46rem}
.note li{position:relative;padding-left:1.1rem}
.note li+li{margin-top:.25rem}
.note li::before{content:"";position:absolute;left:0;top:.62em;width:.45rem;border-top:2px solid var(--soft)}
.quiet,.empty{color:var(--soft)}
.alert{margin-top:.75rem;padding:.9rem 1.25rem;border:1px solid var(--alert-line);border-left-width:5px;border-radius:10px;background:var(--alert-tint);break-inside:avoid}
.alert h3{color:var(--alert)}
.code{margin-top:.4rem;color:var(--soft);font-size:.8125rem}
.code code{font-size:1em}
.values{display:flex;flex-wrap:wrap;gap:.15rem 1.5rem;margin-top:.4rem;font-size:.875rem}
.values div{display:flex;gap:.45rem}
.values dt{flex:none;color:var(--soft)}
.class-name{color:var(--soft);font-size:.8125rem}
.on-paper{display:none}
.values dd{font-weight:600}
.patterns{position:absolute}
svg{display:block;overflow:visible}
.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;margin-bottom:.75rem;font-size:.8125rem;color:var(--soft)}
.legend li{display:flex;align-items:center;gap:.4rem}
.row{display:grid;grid-template-columns:8.5rem minmax(0,1fr);align-items:center;gap:0 .75rem;break-inside:avoid}
.row+.row{margin-top:.2rem}
.name{min-width:0;font-size:.8125rem;color:var(--soft);white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.name b{color:var(--ink)}
.lane{background:var(--card);border-radius:4px;outline:1px solid var(--line);outline-offset:-1px}
.block{stroke:var(--paper);stroke-width:1}
.recorded{fill:var(--recorded)}
.imported{fill:var(--imported)}
.midi{fill:var(--midi)}
.derived{fill:var(--derived)}
.edits{fill:var(--soft)}
.unknown{fill:var(--unknown)}
.block.removed{fill:none;stroke:var(--unknown);stroke-width:1.5;stroke-dasharray:4 3}
.exported{fill:none;stroke:var(--ink);stroke-width:1.5}
.in-block{fill:var(--on-block);font-size:12px;font-weight:600}
.axis line{stroke:var(--soft)}
.axis text{fill:var(--soft);font-size:12px;text-anchor:middle}
.axis .start{text-anchor:start}
.axis .end{text-anchor:end}
.hatch-ground{fill:var(--paper)}
.hatch-line{fill:var(--hatch)}
.gap{fill:url(#hatch);stroke:var(--hatch);stroke-width:1}
.watched{fill:var(--watched);stroke:var(--recorded);stroke-width:1}
.watched.partial{stroke-dasharray:5 3;fill-opacity:.45}
.unwatched{fill:none;stroke:var(--hatch);stroke-dasharray:2 3}
.more b{color:var(--ink)}
.scale{font-size:.8125rem;color:var(--soft)}
.bars{overflow:hidden;border-bottom:1px solid var(--soft)}
.pair{display:grid;grid-template-columns:minmax(9rem,1fr) minmax(0,1.2fr) minmax(0,1.6fr);gap:.25rem 1.5rem;padding:.7rem 0;border-bottom:1px solid var(--line);break-inside:avoid}
.pair-head{padding:0 0 .3rem;color:var(--soft);font-size:.8125rem}
.pair .soft{margin:0}
.pair{position:relative}
.side{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);color:var(--soft);font-size:.8125rem}
.declared small{display:block;overflow-wrap:anywhere}
.counters{font-size:.875rem}
.counters div{display:flex;justify-content:space-between;gap:1rem;padding:.1rem 0}
.counters dt{color:var(--soft)}
.counters dd{flex:none;max-width:60%;text-align:right}
.is-number{font-weight:650}
.is-word{color:var(--soft);font-style:italic}
.sources{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr));gap:.75rem}
.sources li{padding:.8rem 1rem;border:1px solid var(--line);border-left:5px solid var(--imported);border-radius:10px;background:var(--card);font-size:.9375rem;break-inside:avoid}
.detection{margin-top:.15rem}
.digest{margin-top:.35rem;font-size:.8125rem;line-height:1.35;color:var(--soft)}
.channels{columns:2;column-gap:2.5rem}
.channel{break-inside:avoid;padding:.1rem 0 1.1rem}
.channel h3{display:flex;justify-content:space-between;align-items:baseline;gap:1rem;margin-bottom:.25rem}
.support{font-size:.8125rem}
.support.is-not{font-style:italic}
.channel .soft{margin-top:.2rem}
.channel .counters{margin-top:.25rem}
.channel-axis{display:none}
.facts li{padding:.4rem 0;border-bottom:1px solid var(--line);break-inside:avoid}
.codes li{padding:.2rem 0;font-size:.8125rem;color:var(--soft)}
.codes code{color:var(--ink)}
.opposites{margin-top:.3rem;font-size:.875rem}
.check{margin-top:.75rem}
a{color:var(--link)}
.technical{font-size:.875rem}
.technical div{display:grid;grid-template-columns:12rem minmax(0,1fr);gap:0 1rem;padding:.3rem 0;border-bottom:1px solid var(--line)}
.technical dt{color:var(--soft)}
.technical dd{overflow-wrap:anywhere}
.wide{overflow-x:auto;margin-top:.5rem}
table{width:100%;border-collapse:collapse;font-size:.875rem}
th,td{padding:.3rem 1.25rem .3rem 0;text-align:left;vertical-align:top;white-space:nowrap;border-bottom:1px solid var(--line)}
thead th{color:var(--soft);font-weight:400;font-size:.8125rem}
tbody th{font-weight:600}
details{margin-top:1rem}
summary{cursor:pointer;color:var(--link);font-size:.875rem;width:fit-content}
:focus-visible{outline:2px solid var(--link);outline-offset:3px;border-radius:3px}
footer{margin-top:3rem;padding-top:1rem;border-top:1px solid var(--line);color:var(--soft);font-size:.8125rem;max-width:46rem}
@media (max-width:44rem){
th,td{padding-right:.7rem;font-size:.8125rem}
thead th{white-space:normal}
main{padding:1.5rem 1rem 3rem}
h2{margin-top:2.25rem}
.row{grid-template-columns:minmax(0,1fr);gap:.1rem}
.row+.row{margin-top:.45rem}
.row>span:empty{display:none}
.pair{grid-template-columns:minmax(0,1fr)}
.pair-head{display:none}
.side{position:static;display:block;width:auto;height:auto;clip-path:none}
.declared small{display:inline;margin-left:.35rem}
.channels{columns:1}
.technical div{grid-template-columns:minmax(0,1fr)}
}
@media print{
html{font-size:12.5px}
body{background:none;font-size:1rem}
main{max-width:none;padding:0}
h2{margin-top:1.3rem;break-after:avoid}
h3,.lead,.legend,.pair-head,.class-name{break-after:avoid}
.lead,.lanes,.chart,[aria-labelledby=arrangement],[aria-labelledby=activity]{break-inside:avoid}
.sources{grid-template-columns:repeat(2,minmax(0,1fr))}
.channels{columns:3;column-gap:1.5rem}
details{display:none}
.alert{break-inside:auto}
.alert h3{break-inside:avoid;break-after:auto}
.on-paper{display:block}
footer{margin-top:1rem;padding-top:.4rem}
.wide{overflow:visible}
svg,.decision,.alert,.banner,.sources li{-webkit-print-color-adjust:exact;print-color-adjust:exact}
a{color:inherit}
}
@page{margin:16mm}
`;

/**
 * Returns the style of printed sheets: each has a name and its page number.
 * @param name text without quotes, backslashes and line ends
 */
export function sheetStyle(name: string): string {
  const font = 'font:9px "Helvetica Neue",Arial,"Liberation Sans",sans-serif;color:#565d66';
  return `@page{@bottom-left{content:"${name}";${font}}@bottom-right{content:"Page " counter(page) " of " counter(pages);${font}}}
`;
}
