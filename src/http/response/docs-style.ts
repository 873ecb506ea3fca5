/** The only style sheet of the page. The Content-Security-Policy has the hash of this text. */
export const DOCS_STYLE = `
:root{color-scheme:light dark;--ink:#1c2126;--soft:#5b6670;--line:#dde3e8;--paper:#fff;--tint:#f5f7f9;--link:#0b5cad;--get:#0b6b4f;--post:#8a4b08;--patch:#5b3fa0;--delete:#a32020}
@media (prefers-color-scheme:dark){:root{--ink:#e4e8eb;--soft:#9aa6b0;--line:#333c44;--paper:#14181b;--tint:#1c2226;--link:#7ab8f5;--get:#5cc9a0;--post:#e0a35c;--patch:#b6a0f0;--delete:#f08a8a}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
body{margin:0;display:grid;grid-template-columns:19rem minmax(0,1fr);font:16px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
nav{position:sticky;top:0;height:100vh;overflow-y:auto;padding:1.25rem 1rem;border-right:1px solid var(--line);background:var(--tint);font-size:.8125rem}
nav h2{margin:1.25rem 0 .25rem;font-size:.75rem;letter-spacing:.04em;color:var(--soft)}
nav ul{list-style:none;margin:0;padding:0}
nav li a{display:flex;gap:.5rem;align-items:baseline;padding:.2rem .25rem;border-radius:4px;color:inherit}
nav li a:hover{background:var(--line);text-decoration:none}
nav .method{flex:none;width:3.4rem;font-size:.625rem}
.brand{margin:0;font-size:1rem;font-weight:600}
.brand a{color:inherit}
main{padding:2rem 2.5rem 6rem;max-width:62rem}
h1{margin:0 0 1rem;font-size:2rem;line-height:1.2}
small,.auth{color:var(--soft);font-weight:400}
a{color:var(--link);text-decoration:none}
a:hover{text-decoration:underline}
.skip{position:absolute;left:-100vw;top:0;z-index:1;padding:.5rem 1rem;background:var(--paper)}
.skip:focus{left:0}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
p{margin:.5rem 0;max-width:44rem}
.group{margin:3rem 0 0;padding-bottom:.35rem;border-bottom:2px solid var(--ink);font-size:1.5rem}
article{padding:1.5rem 0;border-bottom:1px solid var(--line)}
article h3{display:flex;flex-wrap:wrap;gap:.35rem .75rem;align-items:baseline;margin:0;font-size:1.0625rem}
ul.values{margin:.35rem 0 0;padding:0;list-style:none;font-size:.875rem}
h4{margin:1.25rem 0 .35rem;font-size:.9375rem}
.summary{display:flex;flex-wrap:wrap;justify-content:space-between;gap:.25rem 2rem;max-width:none;font-size:1.0625rem}
.auth{font-size:.875rem}
code,pre,.method{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
code{font-size:.875em}
.path{font-size:1em;overflow-wrap:anywhere}
.method{font-size:.75rem;color:var(--soft)}
.method.get{color:var(--get)}.method.post{color:var(--post)}.method.patch{color:var(--patch)}.method.delete{color:var(--delete)}
.ok{color:var(--get)}
.deprecated{font-size:.75rem;color:var(--delete)}
.media,.headers{font-size:.875rem;color:var(--soft)}
pre{margin:.5rem 0;padding:.75rem 1rem;overflow-x:auto;border:1px solid var(--line);border-radius:6px;background:var(--tint);font-size:.8125rem;line-height:1.45}
pre code{font-size:1em}
.wide{overflow-x:auto}
table{width:100%;border-collapse:collapse;font-size:.875rem}
th{padding:.25rem 1rem .25rem 0;text-align:left;font-weight:600;color:var(--soft);border-bottom:1px solid var(--line)}
td{padding:.4rem 1rem .4rem 0;vertical-align:top;border-bottom:1px solid var(--line)}
#evidence-codes td:first-child{white-space:normal;overflow-wrap:anywhere;width:16rem}
tr:last-child>td{border-bottom:0}
td:first-child{white-space:nowrap}
td small{margin-left:.4rem}
td:first-child small{display:block;margin:0}
td table{margin-top:.35rem}
.reasons code{display:inline-block;margin-right:.4rem}
.pattern{overflow-wrap:anywhere}
details{margin-top:1rem}
summary{cursor:pointer;font-size:.875rem;color:var(--soft)}
@media (max-width:56rem){
td td code{overflow-wrap:anywhere}
body{display:block}
nav{position:static;height:auto;max-height:14rem;border-right:0;border-bottom:1px solid var(--line)}
main{padding:1.5rem 1rem 4rem}}
@media (max-width:40rem){
table,tbody,tr,td{display:block}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tr{padding:.5rem 0;border-bottom:1px solid var(--line)}tr:last-child{border-bottom:0}
td{padding:.1rem 0;border:0;overflow-wrap:anywhere}
td:first-child,#evidence-codes td:first-child{width:auto;white-space:normal}
td table{padding-left:.75rem;border-left:1px solid var(--line)}}
@media print{nav{display:none}body{display:block}details::details-content{display:block}}
`;
