package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/kubeapi"
)

const (
	// demoPageSize makes a handful of pages of the demonstration's pods.
	demoPageSize = 50
	// tableEvery is how often the table is printed.
	tableEvery = 4 * time.Second
	// refusedFor is how long the connection stays cut.
	refusedFor = 2 * time.Second
	// cutAfter is when it is cut in a demonstration that has no end.
	cutAfter = 5 * time.Second
	// leastBeforeCut is how long there is something to cut, however slow the start.
	leastBeforeCut = time.Second
	// catchUpLimit is what the library promises for a source that has healed, a
	// minute plus one list, and some seconds for that list.
	catchUpLimit = 70 * time.Second
)

// demo is the show with a server of our own.
type demo struct {
	show     *display
	server   *demoServer
	mirror   *mirror
	narrator *narrator
	tables   *time.Ticker
	// owed is the version at which nothing is lost by the cut.
	owed atomic.Uint64
}

// demonstrate runs the show on a network, which it closes.
func demonstrate(ctx context.Context, given settings, network network, show *display) (err error) {
	given.server, given.resource = network.URL(), pods
	server, fleet, err := startDemoServer(network)
	if err != nil {
		return errors.Join(err, network.Close())
	}
	defer func() { err = errors.Join(err, server.close()) }()
	source, err := kubeapi.New(kubeapi.Options{
		BaseURL:    network.URL(),
		Resource:   pods,
		HTTPClient: network.Client(),
	})
	if err != nil {
		return err
	}
	d := &demo{show: show, server: server}
	d.narrator = newNarrator(show, "pods", newTrial(given))
	d.narrator.resumed = d.resumed
	d.mirror, err = newMirror(&requests{ListerWatcher: source, told: d.narrator}, "pods", demoPageSize, d.narrator)
	if err != nil {
		return err
	}
	d.headline(given.lasts)
	show.section(fmt.Sprintf("first list, in pages of %d (each made to take %v)", demoPageSize, slowPage))

	server.startChanges(fleet)
	defer func() { _ = server.stopChanges() }() // finish has told of its error
	d.mirror.start()
	defer d.mirror.stop()
	return d.play(ctx, given.lasts)
}

func (d *demo) headline(lasts time.Duration) {
	ends := "ends with Ctrl-C"
	if lasts > 0 {
		ends = fmt.Sprintf("ends after %v", lasts)
	}
	objects := d.server.objects()
	namespaces := map[string]bool{}
	for _, object := range objects {
		namespaces[object.GetNamespace()] = true
	}
	d.show.text(d.show.paint(bold, "A mirror of a list/watch API, kept equal in memory"), "",
		fmt.Sprintf("The API is at %s: %d pods in %d namespaces, changing about", d.server.network.URL(), len(objects), len(namespaces)),
		fmt.Sprintf("%d times a second. Nothing leaves this machine; the show %s.", time.Second/changeEvery, ends))
}

// play is the show from the first list to the final check.
func (d *demo) play(ctx context.Context, lasts time.Duration) error {
	started := time.Now()
	if err := d.narrator.trial.wait(ctx, stageList, d.mirror.synced(), 0); err != nil {
		return err
	}
	d.show.tell(green, "✓", "synced: %d pods, all of the first list, are in the index", d.mirror.size())
	d.mirror.table(d.show, "pods")

	d.show.section("changes, as the handler is told of them")
	d.tables = time.NewTicker(tableEvery)
	defer d.tables.Stop()
	cut := cutAfter
	var end <-chan time.Time
	if lasts > 0 {
		cut = lasts / 3
		end = time.After(lasts - time.Since(started))
	}
	if err := d.narrator.listShown(ctx, catchUpLimit); err != nil {
		return err
	}
	d.watchUntil(ctx, time.After(max(cut-time.Since(started), leastBeforeCut)))
	if ctx.Err() == nil {
		d.outage(ctx)
	}
	d.watchUntil(ctx, end)
	return d.finish(ctx)
}

// watchUntil lets the changes go by, with a table now and then.
func (d *demo) watchUntil(ctx context.Context, end <-chan time.Time) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end:
			return
		case <-ticks.C:
			d.show.tick()
		case <-d.tables.C:
			d.mirror.table(d.show, "pods")
		}
	}
}

// outage cuts the connection, lets it be for a while, and waits until the mirror
// has got over it.
func (d *demo) outage(ctx context.Context) {
	d.show.section("the connection is cut; the pods go on changing")
	d.show.tell(yellow, "!", "cutting every connection, and refusing new ones for %v", refusedFor)
	d.server.cut()
	d.sleep(ctx, refusedFor/2)
	d.show.tell(plain, "·", "the mirror is %q; the %d pods it holds can be read all the same. It is at version %s, the server at %s",
		d.mirror.status().Phase, d.mirror.size(), d.mirror.status().AppliedVersion, d.server.source.ResourceVersion())
	d.sleep(ctx, refusedFor/2)
	d.owed.Store(d.server.source.Version())
	d.show.tell(yellow, "!", "connections are taken again; the mirror tries when its pause is over")
	d.server.heal()

	limited, cancel := context.WithTimeout(ctx, catchUpLimit)
	defer cancel()
	if d.mirror.waitUntil(limited, func() bool { return d.mirror.hasReached(d.owedVersion()) }) {
		d.show.tell(green, "✓", "nothing is lost: all changes up to version %s are in the mirror", d.owedVersion())
		d.mirror.table(d.show, "pods")
		d.tables.Reset(tableEvery)
	}
}

// owedVersion is the version that the mirror must reach to have missed nothing. It
// rises once, when the watch goes on, before the first event of that is told.
func (d *demo) owedVersion() string { return strconv.FormatUint(d.owed.Load(), 10) }

func (d *demo) sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// resumed tells of the watch that went on, before its first event is handled.
func (d *demo) resumed(version string) {
	now := d.server.source.Version()
	d.owed.Store(now)
	d.show.tell(green, "✓", "watching again from version %s, without a list: so far the server has seen %s",
		version, d.requestsSeen())
	// Versions of this server count its changes.
	if from, err := strconv.ParseUint(version, 10, 64); err == nil {
		d.show.tell(plain, "·", "meanwhile it has come to version %d; here are the %d changes:", now, now-from)
	}
}

// requestsSeen is what the server was asked for, by its own account.
func (d *demo) requestsSeen() string {
	lists, pages, checks := d.server.lists()
	seen := fmt.Sprintf("%s (%s) and %s", number(lists, "list"), number(pages, "page"), number(d.server.watches(), "watch"))
	if checks > 0 {
		seen += fmt.Sprintf(", and %s of its version", number(checks, "check"))
	}
	return seen
}

// number is a count with its noun.
func number(count int, noun string) string {
	switch {
	case count == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		return fmt.Sprintf("%d %ses", count, noun)
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

// finish ends the changes, lets the mirror catch up and compares. It runs to its
// end also after an interrupt: this is what the show is for.
func (d *demo) finish(ctx context.Context) error {
	if err := d.server.stopChanges(); err != nil {
		return err
	}
	stopped := time.Now()
	version := d.server.source.ResourceVersion()
	d.show.section("does the mirror equal the source?")
	d.show.tell(plain, "·", "the changes have ended, with version %s", version)

	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), catchUpLimit)
	defer cancel()
	if !d.mirror.waitUntil(limited, func() bool { return d.mirror.hasReached(version) }) {
		return fmt.Errorf("the mirror has not caught up within %v: the source is at version %s, it is %s",
			catchUpLimit, version, d.mirror.statusLine())
	}
	took := time.Since(stopped)
	d.mirror.stop() // so that the last change has been told, and is counted
	d.show.tell(plain, "·", "the mirror has applied it %d ms later; comparing", took.Milliseconds())
	return d.check(version)
}

func (d *demo) check(version string) error {
	objects := d.server.objects()
	c := compare(objects, version, d.mirror, func(string, string) bool { return false })
	// Nothing changes any more, so the mirror cannot be ahead either.
	differ := append(c.differ, c.moved...)
	d.show.text(c.objectsLine())
	differ = append(differ, checkIndexes(d.show, objects, d.mirror)...)
	told := d.narrator.tally()
	d.show.text(
		d.show.paint(dim, fmt.Sprintf("          told: %d added, %d updated, %d deleted, %s",
			told.added, told.updated, told.deleted, number(told.failures, "failure"))),
		d.show.paint(dim, "          seen by the server: "+d.requestsSeen()))
	if err := errorOf(differ); err != nil {
		return err
	}
	equalLine(d.show, d.mirror.size(), version, "")
	return nil
}
