package statuspage

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/url"
	"time"
)

// contentPolicy permits the pages' own style and forms to the same page, and nothing else.
var contentPolicy = func() string {
	hash := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"link":  link,
	"text":  errorText,
	"age":   shortDuration,
	"time":  func(t time.Time) string { return t.UTC().Format("2006-01-02\u00a015:04:05") },
	"bytes": formatBytes,
}).Parse(templates + memoryTemplate))

// link returns a link to another page, from pairs of name and value.
func link(pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return "?" + query.Encode()
}

const style = `
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #1b1f24; --soft: #59636e; --line: #d9dee3; --accent: #0b62d0;
  --ok: #1a7f37; --busy: #0b62d0; --bad: #c62828; --off: #6b7280; --fill: rgba(11, 98, 208, .12); }
@media (prefers-color-scheme: dark) { :root { --page: #101418; --card: #191f25; --text: #e6eaee; --soft: #9aa6b2; --line: #303942;
  --accent: #6cb2ff; --ok: #4cc46a; --busy: #6cb2ff; --bad: #ff7b72; --off: #8b949e; --fill: rgba(108, 178, 255, .16); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 20px 24px 48px; }
h1 { font-size: 22px; margin: 4px 0 14px; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 28px 0 8px; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
nav { color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
.type { margin: -8px 0 14px; overflow-wrap: anywhere; } .time { white-space: nowrap; } .phase { min-width: 110px; } .middle td { vertical-align: middle; }
.soft { color: var(--soft); } .small { font-size: 13px; } .number { text-align: right; font-variant-numeric: tabular-nums; }
.wrap { overflow-wrap: anywhere; } .bad { color: var(--bad); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.badge { display: inline-block; padding: 1px 9px; border-radius: 99px; border: 1px solid currentColor; font-size: 13px; white-space: nowrap; }
.badge.ok { color: var(--ok); } .badge.busy { color: var(--busy); } .badge.bad { color: var(--bad); } .badge.off { color: var(--off); }
table { width: 100%; border-collapse: collapse; font-size: 14px; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 12.5px; } th.number { text-align: right; }
th, td { padding: 8px 12px; border-bottom: 1px solid var(--line); vertical-align: top; } tr:last-child td { border-bottom: 0; }
td.name { font-weight: 600; overflow-wrap: anywhere; min-width: 100px; }
.kind { min-width: 150px; overflow-wrap: anywhere; }
.groups { display: grid; grid-template-columns: repeat(auto-fill, minmax(290px, 1fr)); gap: 14px; }
.groups h2 { margin: 0; padding: 12px 14px 2px; font-size: 14px; }
dl { display: grid; grid-template-columns: repeat(2, 1fr); gap: 0; margin: 0; padding: 2px 0 8px; }
dl div { padding: 6px 14px; min-width: 0; } dl .wide { grid-column: 1 / -1; } dt { color: var(--soft); font-size: 12.5px; } dd { margin: 0; font-size: 15px; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
header { color: var(--soft); font-size: 13px; overflow-wrap: anywhere; margin-bottom: 10px; }
.summary { margin: -6px 0 14px; font-size: 16px; } .small-gap { margin: 10px 0 0; } .note { margin: -4px 0 8px; } .cause { white-space: nowrap; }
.problem { border-color: var(--bad); border-left-width: 4px; padding: 10px 14px; margin-bottom: 14px; overflow-wrap: anywhere; }
.problem p { margin: 2px 0; } .problem h2 { margin: 0 0 4px; font-size: 14px; color: var(--bad); }
.past { margin: 14px 0 0; overflow-wrap: anywhere; } code { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(290px, 1fr)); gap: 14px; margin-top: 14px; }
figure { margin: 0; padding: 12px 14px; } figcaption { display: flex; justify-content: space-between; gap: 8px; font-size: 14px; }
figcaption b { font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: 96px; margin: 2px 0 4px; } svg.spark { height: 26px; width: 120px; margin: 0; }
.grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
.line { fill: none; stroke: var(--accent); stroke-width: 1.6; stroke-linejoin: round; vector-effect: non-scaling-stroke; } .area { fill: var(--fill); stroke: none; }
.bar { height: 12px; min-width: 90px; margin: 4px 0 0; } .bar rect { fill: var(--accent); }
.axis { display: flex; justify-content: space-between; color: var(--soft); font-size: 12px; }
form { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 8px 0; }
input, button { font: inherit; padding: 6px 10px; border: 1px solid var(--line); border-radius: 6px; background: var(--card); color: var(--text); }
::placeholder { color: var(--soft); opacity: 1; } input[type=search] { flex: 1 1 220px; min-width: 0; max-width: 520px; } button { cursor: pointer; }
pre { margin: 0; padding: 14px; overflow-x: auto; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
ul.keys { list-style: none; margin: 0; padding: 8px 0; columns: 3 260px; column-gap: 0; } ul.keys li { padding: 3px 14px; break-inside: avoid; overflow-wrap: anywhere; }
footer { margin-top: 26px; color: var(--soft); font-size: 13px; display: flex; flex-wrap: wrap; gap: 6px 18px; }
@media (max-width: 760px) { main { padding: 14px 14px 40px; } td.wide { display: block; text-align: left; } td.wide::before { display: block; }
  table, tbody, tr, td { display: block; } thead { display: none; } tr { padding: 8px 0; border-bottom: 1px solid var(--line); } tr:last-child { border-bottom: 0; }
  td { border: 0; padding: 3px 14px; display: flex; justify-content: space-between; gap: 16px; text-align: right; } td.name { font-size: 16px; text-align: left; }
  td::before { content: attr(data-label); color: var(--soft); font-weight: 400; text-align: left; white-space: nowrap; } td.name::before, td:not([data-label])::before { content: none; } td:empty { display: none; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; } }
`

const templates = `
{{define "top"}}<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{{.Title}} – {{.Program.Title}}</title><style>{{.Style}}</style></head><body><main>
{{with .Program}}<header>{{.Title}}{{with .Version}}, version {{.}}{{end}}, started <span class="time">{{time .Started}} UTC</span></header>{{end}}{{end}}

{{define "bottom"}}</main></body></html>{{end}}

{{define "plot"}}<figure class="card"><figcaption><span>{{.Title}}</span><b>{{.Now}}</b></figcaption>
<svg role="img" aria-label="{{.Title}}: {{.Now}} now, at most {{.Most}}" viewBox="0 0 {{.Width}} {{.Height}}" preserveAspectRatio="none">
<line class="grid" x1="0" y1="0.5" x2="{{.Width}}" y2="0.5"/><line class="grid" x1="0" y1="50" x2="{{.Width}}" y2="50"/>
<line class="grid" x1="0" y1="99.5" x2="{{.Width}}" y2="99.5"/><path class="area" d="{{.Area}}"/><path class="line" d="{{.Line}}"/></svg>
<div class="axis"><span>{{.From}}</span><span>highest {{.Most}}, scale to {{.Top}}</span><span>now</span></div></figure>{{end}}

{{define "spark"}}{{if .Line}}<svg class="spark" role="img" aria-label="Events per second: {{.Now}} now, at most {{.Most}}"
viewBox="0 0 {{.Width}} {{.Height}}" preserveAspectRatio="none"><path class="area" d="{{.Area}}"/><path class="line" d="{{.Line}}"/></svg>{{end}}{{end}}

{{define "search"}}<form method="get"><input type="hidden" name="name" value="{{.Name}}">
<input type="search" name="part" value="{{.Part}}" aria-label="Part of the keys" placeholder="part of a key"><button>Show keys</button></form>{{end}}

{{define "error"}}{{template "top" (.Top "Status")}}{{with .Content}}<nav><a href="?">All caches</a>{{with .Name}} /
<a href="{{link "name" .}}">{{.}}</a>{{end}}</nav><h1>{{.Text}}{{with .Key}}: {{.}}{{end}}</h1>{{end}}{{template "bottom"}}{{end}}

{{define "overview"}}{{template "top" (.Top "Caches")}}<h1>Caches</h1>
{{with .Content}}{{if .Caches}}<p class="summary{{if .WithProblem}} bad{{end}}">{{.Summary}}</p>
<div class="card"><table class="middle"><thead><tr><th>Name</th><th>Type</th><th>State</th><th>Last failure</th><th>Failing for</th>
<th class="number">Objects</th><th class="number">Staleness</th><th class="number">Backlog</th><th class="number">Quarantined</th><th>Events per second</th></tr></thead><tbody>
{{range .Caches}}<tr><td class="name"><a href="{{link "name" .Name}}">{{.Name}}</a></td><td data-label="Type" class="kind">{{.TypeDescription}}</td>
<td data-label="State"><span class="badge {{.Color}}">{{.Activity}}</span></td>
<td data-label="Last failure" class="cause">{{if .IsPastFailure}}<span class="soft">{{.Cause}}, {{.Ago}}</span>{{else}}{{with .Cause}}<span class="bad">{{.}}</span>{{end}}{{end}}</td>
<td data-label="Failing for">{{with .FailingFor}}<span class="bad">{{.}}</span>{{end}}</td>
<td data-label="Objects" class="number">{{with .Objects}}{{.}}{{end}}</td><td data-label="Staleness" class="number">{{.Staleness}}</td>
<td data-label="Backlog" class="number">{{if .HasBacklog}}{{.Backlog}}{{end}}</td>
<td data-label="Quarantined" class="number">{{with .Quarantined}}<span class="bad">{{len .}}</span>{{else}}0{{end}}</td>
<td data-label="Events per second">{{template "spark" .Events}}</td></tr>
{{end}}</tbody></table></div>{{else}}<p>No cache was added. Call <code>registry.Add("pods", informer)</code> for each informer, reflector or controller.</p>{{end}}
<footer><span>{{time .Time}} UTC</span><a href="{{link "refresh" "5"}}">Refresh every 5 s</a><a href="{{link "format" "json"}}">JSON</a></footer>{{end}}{{template "bottom"}}{{end}}

{{define "one"}}{{template "top" (.Top .Content.Name)}}{{with .Content}}{{$page := .}}<nav><a href="?">All caches</a></nav>
<h1>{{.Name}} <span class="badge {{.Color}}">{{.Activity}}</span></h1>
{{with .TypeDescription}}<p class="soft small type">{{.}}</p>{{end}}
{{with .Problems}}<div class="card problem"><h2>Present problems</h2>{{range .}}<p><b>{{.Title}}</b></p>{{with .Text}}<p class="small">{{.}}</p>{{end}}{{end}}</div>{{end}}
<div class="groups">{{range .FactGroups}}<section class="card"><h2>{{.Title}}</h2><dl>{{range .Facts}}<div{{if .IsWide}} class="wide"{{end}}><dt>{{.Name}}</dt><dd>{{.Value}}</dd></div>{{end}}</dl></section>{{end}}</div>
{{if .IsPastFailure}}<p class="past small soft">Past failure, {{.Ago}}: {{.LastFailure.Cause}}: {{text .LastFailure.Err}}</p>{{end}}
{{with .Plots}}<div class="plots">{{range .}}{{template "plot" .}}{{end}}</div>{{end}}
{{with .EmptyPlots}}<p class="soft small small-gap">{{range .}}{{.Title}}: {{.Empty}}. {{end}}</p>{{end}}

{{if .HasObjects}}<h2>Memory</h2><p><a href="{{link "name" .Name "memory" ""}}">What the memory of the objects is spent on</a></p>
<h2>Keys</h2><form method="get"><input type="hidden" name="name" value="{{.Name}}">
<input type="search" name="part" value="" aria-label="Part of the keys" placeholder="part of a key"><button>Show keys</button></form>{{end}}

{{with .Quarantine}}<h2>Quarantined objects</h2><div class="card"><table><thead><tr><th>Key</th><th>Version</th><th>Stage</th><th>Error</th></tr></thead><tbody>
{{range .}}<tr><td class="name">{{if or $page.HideObjects (not $page.HasObjects)}}{{.Key}}{{else}}<a href="{{link "name" $page.Name "key" .Key}}">{{.Key}}</a>{{end}}</td>
<td data-label="Version">{{.ResourceVersion}}</td><td data-label="Stage">{{.Stage}}</td><td data-label="Error" class="wrap wide">{{text .Err}}</td></tr>{{end}}</tbody></table></div>{{end}}

{{with .Sources}}<h2>Namespaces</h2><div class="card"><table><thead><tr><th>Namespace</th><th>State</th><th>For</th><th>Synced</th><th>Staleness</th><th>Version</th><th class="number">Failures in a row</th><th>Last failure</th></tr></thead><tbody>
{{range .}}<tr><td class="name">{{.Name}}</td><td data-label="State"><span class="badge {{.Color}}">{{.Activity}}</span></td><td data-label="For">{{.For}}</td><td data-label="Synced">{{if .Synced}}yes{{else}}<span class="bad">no</span>{{end}}</td>
<td data-label="Staleness">{{.Staleness}}</td><td data-label="Version">{{.ReceivedVersion}}</td><td data-label="Failures in a row" class="number">{{.ConsecutiveFailures}}</td>
<td data-label="Last failure" class="wrap wide">{{if .IsPastFailure}}<span class="soft">{{.Ago}}: {{text .LastFailure.Err}}</span>{{else}}{{with .LastFailure}}{{text .Err}}{{end}}{{end}}</td></tr>{{end}}</tbody></table></div>{{end}}

{{with .Handlers}}<h2>Handlers</h2><div class="card"><table><thead><tr><th>Name</th><th>Delivery</th><th>Synced</th><th class="number">Backlog</th><th class="number">Oldest change</th><th class="number">Delivered</th><th>Notified version</th><th class="number">Panics</th></tr></thead><tbody>
{{range .}}<tr><td class="name">{{.Name}}</td><td data-label="Delivery">{{.Delivery}}{{if .Merging}}, merging{{end}}</td><td data-label="Synced">{{if .Synced}}yes{{else}}<span class="bad">no</span>{{end}}</td>
<td data-label="Backlog" class="number">{{.Backlog}}</td><td data-label="Oldest change" class="number">{{if .OldestAge}}{{age .OldestAge}}{{end}}</td><td data-label="Delivered" class="number">{{.Delivered}}</td><td data-label="Notified version" class="wrap">{{.NotifiedVersion}}</td>
<td data-label="Panics" class="number">{{with .Panics}}<span class="bad">{{.}}</span>{{else}}0{{end}}</td></tr>{{end}}</tbody></table></div>{{end}}

<h2>History</h2><div class="card"><table><thead><tr><th>Time (UTC)</th><th>State</th><th>Synced</th><th class="number">Failures</th><th>Failure</th></tr></thead><tbody>
{{range .History}}<tr><td data-label="Time (UTC)" class="time">{{time .Time}}{{with .Span}}<br><span class="soft">over {{age .}}</span>{{end}}</td>
<td data-label="State" class="wrap phase"><span>{{with .Namespace}}{{.}}: {{end}}{{.Activity}}</span></td><td data-label="Synced">{{if .Synced}}yes{{else}}no{{end}}</td>
<td data-label="Failures" class="number">{{with .Count}}{{.}}{{end}}</td><td data-label="Failure" class="wrap wide">{{with .Cause}}{{.}}{{end}}{{with .Error}}: {{.}}{{end}}</td></tr>{{end}}</tbody></table></div>
<footer><a href="{{link "name" .Name "refresh" "5"}}">Refresh every 5 s</a><a href="{{link "name" .Name "format" "json"}}">JSON</a></footer>{{end}}{{template "bottom"}}{{end}}

{{define "keys"}}{{template "top" (.Top .Content.Name)}}{{with .Content}}<nav><a href="?">All caches</a> / <a href="{{link "name" .Name}}">{{.Name}}</a></nav><h1>Keys of {{.Name}}</h1>
{{template "search" .}}
<p class="soft small">{{.Count}} keys{{with .Prefix}} begin with {{.}}{{end}}{{with .Part}} contain {{.}}{{end}}</p>
{{$page := .}}{{with .Keys}}<div class="card"><ul class="keys">{{range .}}<li>{{if $page.HideObjects}}{{.}}{{else}}<a href="{{link "name" $page.Name "key" .}}">{{.}}</a>{{end}}</li>{{end}}</ul></div>{{end}}
{{with .Quarantined}}<h2>Quarantined, without an earlier state</h2><div class="card"><ul class="keys">{{range .}}<li>{{if $page.HideObjects}}{{.}}{{else}}<a href="{{link "name" $page.Name "key" .}}">{{.}}</a>{{end}}</li>{{end}}</ul></div>{{end}}
<footer>{{with .Next}}<a href="{{link "name" $page.Name "prefix" $page.Prefix "part" $page.Part "after" .}}">Next keys</a>{{end}}<a href="{{link "name" .Name "prefix" .Prefix "part" .Part "format" "json"}}">JSON</a></footer>{{end}}{{template "bottom"}}{{end}}

{{define "object"}}{{template "top" (.Top .Content.Key)}}{{with .Content}}<nav><a href="?">All caches</a> / <a href="{{link "name" .Name}}">{{.Name}}</a> / <a href="{{link "name" .Name "prefix" ""}}">keys</a></nav><h1>{{.Key}}</h1>
{{with .Quarantined}}<h2>Its latest state is quarantined</h2><div class="card"><table><tbody>
<tr><th>Version</th><td>{{.ResourceVersion}}</td></tr><tr><th>Stage</th><td>{{.Stage}}</td></tr><tr><th>Error</th><td class="bad">{{text .Err}}</td></tr></tbody></table></div>
{{end}}{{with .Text}}{{if $.Content.Quarantined}}<h2>An earlier state</h2>{{end}}<div class="card"><pre>{{.}}</pre></div>
{{end}}<footer><span>{{.Name}} at version {{.AppliedVersion}}</span><a href="{{link "name" .Name "key" .Key "format" "json"}}">JSON</a></footer>{{end}}{{template "bottom"}}{{end}}
`
