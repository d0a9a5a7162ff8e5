package soak

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

const (
	// population is how many objects there are, namespaceCount in how many
	// namespaces.
	population     = 400
	namespaceCount = 4
	// firstVersion is so large that all versions have the same number of digits: the
	// ninth million would weigh less than the tenth.
	firstVersion = 1_000_000_000
	// historyLimit is how many changes the source remembers: all of a watch that is
	// silent for some minutes, not all of a burst.
	historyLimit = 512
	// burstWrites is how many updates come at once, each hour.
	burstWrites = 3000
	// ownerLabel is the label that is indexed, refusedLabel the one of objects that the
	// transform does not take.
	ownerLabel   = "owner"
	refusedLabel = "refused"
)

// objectName is the name of an object.
type objectName struct{ namespace, name string }

// churn writes to the source: about thirty changes a minute. Names and owners come up
// that have never been there, and go for good, so that what a store or an index keeps of
// a removed key adds up. All have the same length, whatever the hour.
type churn struct {
	source *cachetest.Source
	random *rand.Rand
	// live are the objects that are there.
	live []objectName
	// serial numbers names and owners.
	serial int
	writes int
	// restored is true while a restored source is not written to: one that passes its old version before the
	// mirrors have checked it cannot be distinguished from one that never went back.
	restored bool
}

func newChurn(source *cachetest.Source, seed uint64) *churn {
	c := &churn{source: source, random: rand.New(rand.NewPCG(seed, 0))}
	c.fill()
	return c
}

// fill makes objects under new names until there are as many as there should be.
func (c *churn) fill() {
	for len(c.live) < population {
		c.serial++
		name := objectName{fmt.Sprintf("namespace-%d", c.serial%namespaceCount), fmt.Sprintf("object-%08d", c.serial)}
		c.live = append(c.live, name)
		c.write(name, "")
	}
}

// write writes one object; refused, if not empty, has the transform refuse it. Eight
// objects in a row have the same owner, which is never seen again after them.
func (c *churn) write(name objectName, refused string) {
	c.writes++
	labels := map[string]string{ownerLabel: fmt.Sprintf("owner-%08d", c.serial/8)}
	if refused != "" {
		labels[refusedLabel] = refused
	}
	content := strings.Repeat(fmt.Sprintf("%016x", c.random.Uint64()), 16)
	must(c.source.Apply(&object{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.namespace, Name: name.name, Labels: labels,
			Annotations: map[string]string{"content": content},
		},
	}))
}

func (c *churn) remove(name objectName) {
	c.writes++
	_, err := c.source.Delete(name.namespace, name.name)
	must(err)
}

// one is an object, by chance.
func (c *churn) one() objectName { return c.live[c.random.IntN(len(c.live))] }

// lose takes some objects, by chance, out of the live ones; lost does the rest.
func (c *churn) lose(n int, lost func(objectName)) {
	for range n {
		i := c.random.IntN(len(c.live))
		lost(c.live[i])
		c.live[i] = c.live[len(c.live)-1]
		c.live = c.live[:len(c.live)-1]
	}
}

// minute is an ordinary minute: updates, deletions, new names, an object that is made
// anew under its name, one that cannot be applied and one that can be applied again.
func (c *churn) minute() {
	if c.restored {
		return
	}
	for range 16 {
		c.serial++
		c.write(c.one(), "")
	}
	c.lose(4, c.remove)
	c.fill()
	again := c.one()
	c.remove(again)
	c.write(again, "")
	c.write(c.one(), "yes")
}

// burst is what a controller that runs wild sends: first no faster than watches take
// it, so that all of it has to wait for a slow handler, then faster, so that the history
// does not reach back to where they are.
func (c *churn) burst() {
	for i := range burstWrites {
		c.write(c.one(), "")
		if i%100 == 0 && i < burstWrites-2*historyLimit {
			synctest.Wait()
		}
	}
}

// hide removes objects without telling any watch.
func (c *churn) hide() {
	c.lose(5, func(name objectName) {
		c.writes++
		_, err := c.source.DeleteSilently(name.namespace, name.name)
		must(err)
	})
}

// restore takes the source back by some changes, as a backup does. Names that are made
// afterwards are still new ones.
func (c *churn) restore() {
	c.restored = true
	must(c.source.Rollback(c.source.Version() - 20))
	c.live = c.live[:0]
	for _, obj := range c.source.Objects() {
		meta := obj.(*object)
		c.live = append(c.live, objectName{meta.Namespace, meta.Name})
	}
}

// tidy leaves as many objects as there should be, each written just now: all can be applied,
// have come to the mirrors by the same way, and have owners that are equally many. What is
// weighed then does not depend on which fault came last.
func (c *churn) tidy() {
	if extra := len(c.live) - population; extra > 0 {
		c.lose(extra, c.remove)
	}
	c.fill()
	c.serial = (c.serial/8 + 1) * 8
	for _, name := range c.live {
		c.write(name, "")
		c.serial++
	}
}

// must panics: the soak writes only what its own source takes.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
