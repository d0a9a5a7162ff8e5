package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/kubeapi"
)

const (
	// remotePageSize is what API clients usually ask for.
	remotePageSize = 500
	// The final check is made a few times, each with a list of its own and time
	// for the mirror to reach that: the source does not stand still for it.
	checks       = 4
	checkLimit   = 30 * time.Second
	reachingList = 3 * time.Second
)

// remote is the show with somebody else's server, which is only read.
type remote struct {
	what     string
	show     *display
	source   *kubeapi.ListerWatcher
	mirror   *mirror
	narrator *narrator
}

// mirrorRemote runs the show with the server that the settings name.
func mirrorRemote(ctx context.Context, settings settings, show *display) error {
	client, err := settings.client()
	if err != nil {
		return fmt.Errorf("-ca-file: %w", err)
	}
	defer client.CloseIdleConnections()
	return mirrorThrough(ctx, settings, client, show)
}

func mirrorThrough(ctx context.Context, settings settings, client *http.Client, show *display) error {
	source, err := settings.source(client)
	if err != nil {
		return fmt.Errorf("-server and its flags: %w", err) // the settings have not seen it
	}
	r := &remote{what: settings.resource.Resource, show: show, source: source}
	r.narrator = newNarrator(show, r.what, newTrial(settings))
	r.mirror, err = newMirror(&requests{ListerWatcher: source, told: r.narrator}, r.what, remotePageSize, r.narrator)
	if err != nil {
		return err
	}
	r.headline(settings)
	r.show.section("first list")
	r.mirror.start()
	defer r.mirror.stop()
	return r.play(ctx, settings.lasts)
}

// client sends the requests. Its connections are this show's own.
func (s settings) client() (*http.Client, error) {
	if s.caFile != "" {
		return kubeapi.ClientWithCA(s.caFile)
	}
	return &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}, nil
}

// source is what is mirrored.
func (s settings) source(client *http.Client) (*kubeapi.ListerWatcher, error) {
	options := kubeapi.Options{
		BaseURL:       s.server,
		Resource:      s.resource,
		Namespace:     s.namespace,
		LabelSelector: s.selector,
		HTTPClient:    client,
	}
	if s.tokenFile != "" {
		options.Authorize = kubeapi.BearerTokenFile(s.tokenFile)
	}
	return kubeapi.New(options)
}

func (r *remote) headline(s settings) {
	where, which, ends := "all namespaces", "", "until Ctrl-C"
	if s.namespace != "" {
		where = "namespace " + s.namespace
	}
	if s.selector != "" {
		which = " with " + s.selector
	}
	if s.lasts > 0 {
		ends = fmt.Sprintf("for %v", s.lasts)
	}
	r.show.text(r.show.paint(bold, fmt.Sprintf("A mirror of the %s of %s", r.what, s.server)))
	r.show.text("", fmt.Sprintf("%s, %s%s, %s. The server is only read.", s.resource.GroupVersion(), where, which, ends))
}

// play is the show from the first list to the final check.
func (r *remote) play(ctx context.Context, lasts time.Duration) error {
	if err := r.narrator.trial.wait(ctx, stageList, r.mirror.synced(), 0); err != nil {
		return err
	}
	r.show.tell(green, "✓", "synced: %d %s, all of the first list, are in the index", r.mirror.size(), r.what)
	if r.mirror.size() == 0 {
		r.show.tell(yellow, "!", "nothing to mirror so far: %s", nothingFound(r.narrator.trial.given))
	}
	r.mirror.table(r.show, r.what)
	r.show.section("changes, as the handler is told of them")
	// The time of the show begins here, also for a watch that is slow to open.
	var end <-chan time.Time
	var limit time.Duration
	if lasts > 0 {
		end = time.After(lasts)
		limit = max(lasts, leastForWatch)
	}
	if err := r.narrator.listShown(ctx, limit); err != nil {
		return err
	}
	r.watchUntil(ctx, end)
	r.mirror.table(r.show, r.what)
	return r.check(context.WithoutCancel(ctx))
}

// nothingFound says what matches nothing. A server does not know a namespace or a label
// that does not exist from one that no object has.
func nothingFound(given settings) string {
	what := given.resource.Resource
	if given.namespace == "" && given.selector == "" {
		return "the server has no " + what
	}
	found, hint := "no "+what, ""
	if given.namespace != "" {
		found += " in namespace " + given.namespace
		hint = "; one that does not exist looks the same"
	}
	if given.selector != "" {
		found += " with " + given.selector
	}
	return found + hint
}

// watchUntil lets the changes go by, with a table now and then if there were any.
func (r *remote) watchUntil(ctx context.Context, end <-chan time.Time) {
	ticks, tables := time.NewTicker(time.Second), time.NewTicker(2*tableEvery)
	defer ticks.Stop()
	defer tables.Stop()
	var before tally
	for {
		select {
		case <-ctx.Done():
			return
		case <-end:
			return
		case <-ticks.C:
			r.show.tick()
		case <-tables.C:
			if now := r.narrator.tally(); now != before {
				before = now
				r.mirror.table(r.show, r.what)
			}
		}
	}
}

// check lists once more and compares, again if the mirror is not as far yet.
func (r *remote) check(ctx context.Context) error {
	r.show.section("does the mirror equal the source?")
	r.narrator.rememberDeletions()
	var c comparison
	for try := 1; ; try++ {
		list, version, err := r.list(ctx)
		if err != nil {
			return fmt.Errorf("the list to compare with: %w", err)
		}
		limited, cancel := context.WithTimeout(ctx, reachingList)
		equal := r.mirror.waitUntil(limited, func() bool {
			c = compare(list, version, r.mirror, r.narrator.deletedAfter)
			return len(c.differ) == 0
		})
		cancel()
		if equal {
			return r.verdict(c, version)
		}
		r.show.tell(yellow, "!", "not equal yet to the list at version %s, in %s: %s", version, number(len(c.differ), "object"), c.differ[0])
		if try == checks {
			return errorOf(c.differ)
		}
	}
}

// list is one more list, through the same client, page by page.
func (r *remote) list(ctx context.Context) (objects []*unstructured.Unstructured, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	options := metav1.ListOptions{Limit: remotePageSize}
	take := func(_ metav1.ListMeta, item runtime.Object) error {
		if object, ok := item.(*unstructured.Unstructured); ok {
			objects = append(objects, object)
		}
		return nil
	}
	for {
		list, err := r.source.ListItems(ctx, options, take)
		if err != nil {
			return nil, "", err
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return objects, list.ResourceVersion, nil
		}
	}
}

// verdict ends the mirror, so that its indexes stand still, and compares those.
func (r *remote) verdict(c comparison, version string) error {
	r.mirror.stop()
	r.show.text(c.objectsLine())
	ahead := ""
	if len(c.moved) > 0 {
		r.show.text(fmt.Sprintf("          %s %6d           in the mirror already, newer than the list,", fit("changed since", 16), len(c.moved)),
			"          "+fit("", 34)+"such as "+c.moved[0])
		ahead = fmt.Sprintf(" (%d newer than it)", len(c.moved))
	}
	if err := errorOf(checkIndexes(r.show, r.mirror.objects(), r.mirror)); err != nil {
		return err
	}
	equalLine(r.show, r.mirror.size(), version, ahead)
	return nil
}
