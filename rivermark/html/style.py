"""How the page looks: in light and dark, on a phone and on a desk, and on paper."""

from typing import Final

# Colours after Okabe and Ito, told apart without red and green too; text has a contrast of 4.5.
STYLE: Final = """
:root{color-scheme:light dark;--bg:#fff;--soft:#f3f5f7;--line:#d3d9df;--text:#1a2027;--dim:#566270;
--link:#0a58a5;--h0:#edf0f3;--h1:#b9d9ee;--h2:#7ab8e0;--h3:#3489c4;--h4:#0a5487;--good:#2f8f6f;
--goodtext:#0d6147;--warn:#e29a11;--warntext:#7d4f00;--bad:#c8471a;--badtext:#a5330b;--open:#c4ccd4;
--mark:#fff}
@media(prefers-color-scheme:dark){:root{--bg:#11161b;--soft:#1a2128;--line:#35404b;--text:#e6ebf0;
--dim:#a3b0bd;--link:#7fbdf2;--h0:#222b33;--h1:#17405c;--h2:#1f6592;--h3:#3b93cc;--h4:#93cdf3;
--good:#3fa683;--goodtext:#6fd3b0;--warn:#e0a030;--warntext:#f2c062;--bad:#e0693c;--badtext:#ff9d75;
--open:#4a5661;--mark:#11161b}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:16px/1.5 system-ui,-apple-system,
"Segoe UI",Roboto,"DejaVu Sans",sans-serif;overflow-wrap:break-word}
header,main,footer{max-width:76rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.25rem}
h1{font-size:1.6rem;line-height:1.2;margin:0}
h2{font-size:1.25rem;margin:2.25rem 0 .5rem;padding-top:.5rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:0}h4{font-size:.95rem;margin:1rem 0 .25rem}
p{margin:.35rem 0;max-width:70ch}a{color:var(--link)}
.dim,.none,caption{color:var(--dim)}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;background:var(--bg)}
a:focus-visible,summary:focus-visible,.wide:focus-visible{outline:3px solid var(--link);
outline-offset:2px}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:.5rem 0;padding:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.75rem;
margin:1rem 0;padding:0;list-style:none}
.tiles li{background:var(--soft);border:1px solid var(--line);border-radius:8px;padding:.6rem .8rem}
.tiles b{display:block;font-size:1.3rem;line-height:1.2;font-variant-numeric:tabular-nums}
.tiles span{font-size:.85rem;color:var(--dim)}
.wide{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;min-width:100%}
caption span{display:block;position:sticky;left:0;max-width:min(70ch,calc(100vw - 4.5rem))}
caption{text-align:left;padding:.25rem 0;font-size:.85rem}
th,td{padding:.3rem .75rem .3rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line)}
thead th{color:var(--dim);font-weight:600;white-space:nowrap}tbody th{font-weight:600}
th.n,td.n{text-align:right;white-space:nowrap}
tbody th,.nw{white-space:nowrap}.say{display:block;min-width:16rem}
.badge{display:inline-block;border:1px solid currentColor;border-radius:1rem;padding:0 .55rem;
font-size:.8rem;font-weight:600;white-space:nowrap}
.badge.complete,.badge.held{color:var(--goodtext)}.badge.warn{color:var(--warntext)}
.badge.fail,.badge.error{color:var(--badtext)}.badge.open,.badge.unanswered,.badge.none{
color:var(--dim)}
article{border:1px solid var(--line);border-radius:8px;padding:.9rem 1rem;margin:1rem 0}
article>header{display:flex;flex-wrap:wrap;gap:.25rem .75rem;align-items:center;padding:0;margin:0}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:0 2.5rem}
.grid>*{min-width:0}
ul.attention{padding-left:0;list-style:none}ul.attention li{margin:.5rem 0}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--link);padding:.3rem 0}
svg{display:block;width:100%;height:auto}svg.looks{width:auto;display:inline-block}
svg.bars{width:6rem;height:1.3rem}
svg text{font:9px system-ui,sans-serif;fill:var(--dim)}
svg text.mid{text-anchor:middle;font-size:7px}
.h0{fill:var(--h0)}.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}.h4{fill:var(--h4)}
.bar{fill:var(--h3)}.axis{stroke:var(--line);fill:none;stroke-width:1}
.now{fill:var(--warn)}.best{fill:var(--good)}
.miss,.fail{fill:var(--bad)}.thin,.warn{fill:var(--warn)}.complete{fill:var(--good)}
.open{fill:var(--open)}.cross{stroke:var(--mark);stroke-width:1.6;fill:none}
.legend{display:flex;flex-wrap:wrap;gap:.15rem .9rem;font-size:.8rem;color:var(--dim);
margin:.3rem 0}
.legend svg{display:inline-block;width:.8rem;height:.8rem;margin-right:.3rem;vertical-align:-1px}
footer{margin-top:2.5rem;padding-bottom:2rem;color:var(--dim);font-size:.85rem}
@media(max-width:40rem){body{font-size:15px}article{padding:.75rem}}
@media print{.wide{overflow:visible}details{display:block}}
"""
