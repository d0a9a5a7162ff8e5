package statuspage

// memoryTemplate is the page about memory.
const memoryTemplate = `
{{define "bar"}}<svg class="bar" role="img" aria-label="{{.Share}} percent" viewBox="0 0 100 10" preserveAspectRatio="none"><rect width="{{.Bar}}" height="10"/></svg>{{end}}

{{define "shares"}}{{range .}}<tr><td class="name">{{.Name}}</td><td data-label="Objects" class="number">{{.Objects}}</td><td data-label="Memory" class="number">{{bytes .Bytes}}</td>
<td data-label="Share" class="number">{{.Share}} %</td><td>{{template "bar" .}}</td></tr>{{end}}{{end}}

{{define "memory"}}{{template "top" (.Top .Content.Name)}}{{with .Content}}{{$page := .}}<nav><a href="?">All caches</a> / <a href="{{link "name" .Name}}">{{.Name}}</a></nav><h1>Memory of {{.Name}}</h1>
{{if .Report.Objects}}
{{if .Report.Incomplete}}<div class="card problem"><h2>Not synced</h2><p>These are the objects that have arrived so far.</p></div>{{end}}
<div class="groups">{{range .FactGroups}}<section class="card"><h2>{{.Title}}</h2><dl>{{range .Facts}}<div{{if .IsWide}} class="wide"{{end}}><dt>{{.Name}}</dt><dd>{{.Value}}</dd></div>{{end}}</dl></section>{{end}}</div>
{{with .Report.Hints}}<h2>Hints</h2><div class="card"><table><tbody>{{range .}}<tr><td class="wrap">{{.}}</td></tr>{{end}}</tbody></table></div>{{end}}
<h2>Fields</h2><p class="soft small note">A field includes the fields below it, so the shares add up to more than 100 %.</p><div class="card"><table><thead><tr><th>Field</th><th class="number">Memory</th><th class="number">Share</th><th></th></tr></thead><tbody>
{{range .Fields}}<tr><td class="name">{{.Name}}</td><td data-label="Memory" class="number">{{bytes .Bytes}}</td><td data-label="Share" class="number">{{.Share}} %</td><td>{{template "bar" .}}</td></tr>{{end}}</tbody></table></div>
{{with .MoreFields}}<p class="soft small">and {{.}} smaller ones</p>{{end}}
<h2>Namespaces</h2><div class="card"><table><thead><tr><th>Namespace</th><th class="number">Objects</th><th class="number">Memory</th><th class="number">Share</th><th></th></tr></thead><tbody>
{{template "shares" .Namespaces}}</tbody></table></div>
{{with .MoreNamespaces}}<p class="soft small">and {{.}} smaller ones</p>{{end}}
<h2>Types</h2><div class="card"><table><thead><tr><th>Type</th><th class="number">Objects</th><th class="number">Memory</th><th class="number">Share</th><th></th></tr></thead><tbody>
{{template "shares" .Types}}</tbody></table></div>
<h2>Largest objects</h2><p class="soft small note">The bars compare them with the largest one.</p><div class="card"><table><thead><tr><th>Key</th><th class="number">Memory</th><th class="number">Share</th><th></th></tr></thead><tbody>
{{range .Largest}}<tr><td class="name">{{if .Key}}<a href="{{link "name" $page.Name "key" .Key}}">{{.Name}}</a>{{else}}{{.Name}}{{end}}</td>
<td data-label="Memory" class="number">{{bytes .Bytes}}</td><td data-label="Share" class="number">{{.Share}} %</td><td>{{template "bar" .}}</td></tr>{{end}}</tbody></table></div>
{{else}}<p>There are no objects{{if .Report.Incomplete}} yet{{end}}.</p>{{end}}
<footer>{{with .Report.ResourceVersion}}<span>at version {{.}}</span>{{end}}<a href="{{link "name" .Name "memory" "" "format" "json"}}">JSON</a></footer>{{end}}{{template "bottom"}}{{end}}
`
