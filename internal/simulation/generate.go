package simulation

import (
	"math/rand/v2"
	"time"
)

// Generate makes the script of a seed: the same one, always.
func Generate(seed uint64) Script {
	g := &generator{random: rand.New(rand.NewPCG(seed, 0))}
	s := Script{Seed: seed, Setup: g.setup()}
	g.mirrors = len(s.Setup.Mirrors)
	// Each script has a taste for some things, so that they meet each other often.
	g.tastes()
	for range 20 + g.random.IntN(80) {
		s.Steps = append(s.Steps, g.step()...)
	}
	return s
}

type generator struct {
	random  *rand.Rand
	mirrors int
	choices []choice
	total   int
}

// choice is something that a script may do, and how often.
type choice struct {
	weight int
	make   func(*generator) []Step
}

func (g *generator) one(in int) bool { return g.random.IntN(in) == 0 }

func pick[T any](g *generator, from ...T) T { return from[g.random.IntN(len(from))] }

func (g *generator) setup() Setup {
	s := Setup{
		HTTP: g.one(3), Objects: pick(g, 0, 1, 5, 12, 30), HistoryLimit: pick(g, 0, 0, 0, 20),
		BookmarkInterval: pick(g, 0, 0, 5*time.Second, -1),
		Begin:            pick(g, 0, 0, 1, 2, 4, 8), Abrupt: g.one(4),
		IgnoreLimitAtZero: g.one(2), ExpiredOnStream: g.one(2), NoWatchList: g.one(4), WatchListUnsupported: g.one(2),
		RefuseFutureWatches: g.one(2), RestoreLast: pick(g, 0, 0, 0, 1, 5, 20), DamageLast: pick(g, 0, 1+g.random.IntN(1000)),
	}
	for range 1 + g.random.IntN(3) {
		s.Mirrors = append(s.Mirrors, g.mirror())
	}
	return s
}

func (g *generator) mirror() MirrorSetup {
	m := MirrorSetup{
		Kind: pick(g, KindTyped, KindTyped, KindShared, KindScoped, KindController, KindProcess, KindReflector,
			KindForeign, KindNamespaces),
		Strategy: pick(g, 0, 0, 1, 2, 3), PageSize: pick[int64](g, 0, 0, 1, 3, 7),
		Retry500: pick(g, 0, 0, 30*time.Second), MaxWatch: pick(g, 0, 0, 0, 20*time.Second, 60*time.Second),
		Resync: pick(g, 0, 0, 0, 7*time.Second, time.Minute), Merge: g.one(4),
	}
	if m.Resync > 0 && g.one(2) {
		m.Resync = 0
	}
	for range g.random.IntN(4) {
		m.Handlers = append(m.Handlers, HandlerSetup{
			Delivery: g.random.IntN(3), Slow: pick(g, 0, 0, 0, time.Millisecond, 300*time.Millisecond, 2*time.Second),
			PanicEvery: pick(g, 0, 0, 0, 1, 3),
		})
	}
	return m
}

// tastes draws how often this script does what.
func (g *generator) tastes() {
	for _, c := range choices {
		c.weight *= pick(g, 0, 1, 1, 3)
		g.choices = append(g.choices, c)
		g.total += c.weight
	}
	writes := choice{g.total/2 + 1, (*generator).writes}
	g.choices = append(g.choices, writes)
	g.total += writes.weight
}

// step makes one thing happen, or one that ends some time later.
func (g *generator) step() []Step {
	n := g.random.IntN(g.total)
	for _, c := range g.choices {
		if n < c.weight {
			steps := c.make(g)
			steps[0].After = g.pause()
			return steps
		}
		n -= c.weight
	}
	return g.writes()
}

// pause is how long until the next step: mostly not long, so that things meet.
func (g *generator) pause() time.Duration {
	switch g.random.IntN(20) {
	case 0, 1, 2, 3, 4, 5, 6:
		return 0
	case 7, 8, 9, 10, 11:
		return time.Duration(g.random.IntN(1000)) * time.Millisecond
	case 12, 13, 14, 15:
		return time.Duration(g.random.IntN(5000)) * time.Millisecond
	case 16, 17, 18:
		return time.Duration(g.random.IntN(40)) * time.Second
	}
	return time.Duration(g.random.IntN(300)) * time.Second
}

func (g *generator) key() string { return keyAt(g.random.IntN(14)) }

func (g *generator) kind() string { return pick(g, failureKinds...) }

// few is a small number, seldom a large one.
func (g *generator) few() int { return 1 + g.random.IntN(pick(g, 1, 2, 4, 12)) }

func (g *generator) writes() []Step {
	switch g.random.IntN(20) {
	case 0, 1, 2:
		return []Step{{Do: "delete", Key: g.key()}}
	case 3, 4:
		return []Step{{Do: "recreate", Key: g.key()}}
	case 5:
		return []Step{{Do: "write", Key: g.key(), What: pick(g, badTransform, badTransformPanic, badIndex, badIndexPanic, badKey, badDecode)}}
	case 6:
		return []Step{{Do: "unwanted", Key: g.key()}}
	case 7:
		if g.one(12) {
			return []Step{{Do: "burst", N: pick(g, 50, 200, 1500)}}
		}
		return []Step{{Do: "burst", N: 5 + g.random.IntN(20)}}
	}
	return []Step{{Do: "write", Key: g.key()}}
}

// once is a choice of one step.
func once(weight int, make func(*generator) Step) choice {
	return choice{weight, func(g *generator) []Step { return []Step{make(g)} }}
}

// spell is a choice of something that lasts until a later step.
func spell(weight int, begin func(*generator) Step, end Step) choice {
	return choice{weight, func(g *generator) []Step {
		steps := []Step{begin(g)}
		for range g.random.IntN(6) {
			more := g.writes()
			more[0].After = g.pause()
			steps = append(steps, more...)
		}
		last := end
		last.After, last.Mirror = g.pause(), steps[0].Mirror
		return append(steps, last)
	}}
}

// events is a number of events, or bytes; it stands in For.
func (g *generator) events(most int) time.Duration { return time.Duration(g.random.IntN(most)) }

func (g *generator) damage(answers string) Step {
	return Step{Do: answers, N: g.few(), What: pick(g, damagedByte, damagedByte, damagedCut, damagedEnd), For: g.events(10000)}
}

var choices = []choice{
	once(8, func(g *generator) Step { return Step{Do: "fail-lists", N: g.few(), What: g.kind()} }),
	once(8, func(g *generator) Step { return Step{Do: "fail-watches", N: g.few(), What: g.kind()} }),
	once(6, func(g *generator) Step { return Step{Do: "break-watches", What: g.kind()} }),
	once(6, func(g *generator) Step { return Step{Do: "close-watches"} }),
	once(4, func(g *generator) Step { return Step{Do: "close-next-watches", N: g.few(), For: g.events(6)} }),
	once(4, func(g *generator) Step {
		return Step{Do: "break-next-watches", N: g.few(), For: g.events(6), What: g.kind()}
	}),
	spell(3, func(g *generator) Step { return Step{Do: "hang-lists", N: g.few()} }, Step{Do: "go-on"}),
	spell(3, func(g *generator) Step { return Step{Do: "hang-watches", N: g.few()} }, Step{Do: "go-on"}),
	spell(3, func(g *generator) Step {
		return Step{Do: "delay-lists", For: time.Duration(g.random.IntN(20)) * time.Second}
	}, Step{Do: "delay-lists"}),
	spell(2, func(g *generator) Step {
		return Step{Do: "delay-watches", For: time.Duration(g.random.IntN(20)) * time.Second}
	}, Step{Do: "delay-watches"}),
	spell(3, func(g *generator) Step {
		return Step{Do: "delay-events", For: time.Duration(g.random.IntN(3000)) * time.Millisecond}
	}, Step{Do: "delay-events"}),
	spell(1, func(g *generator) Step { return Step{Do: "deaf-lists", N: g.few()} }, Step{Do: "go-on"}),
	spell(1, func(g *generator) Step { return Step{Do: "deaf-watches", N: g.few()} }, Step{Do: "go-on"}),
	spell(4, func(g *generator) Step { return Step{Do: "silence"} }, Step{Do: "resume"}),
	once(3, func(g *generator) Step { return Step{Do: "old-lists", N: g.few(), For: g.events(30)} }),
	once(2, func(g *generator) Step { return Step{Do: "old-bookmark", N: g.few()} }),
	once(3, func(g *generator) Step { return Step{Do: "bookmarks"} }),
	once(1, func(g *generator) Step { return Step{Do: "double-bookmarks", N: g.random.IntN(2)} }),
	once(3, func(g *generator) Step { return Step{Do: "no-initial-end", N: g.few()} }),
	once(2, func(g *generator) Step { return Step{Do: "restore", N: g.random.IntN(30)} }),
	once(6, func(g *generator) Step { return Step{Do: "compact"} }),
	once(3, func(g *generator) Step { return Step{Do: "compact-watches"} }),
	once(3, func(g *generator) Step { return Step{Do: "expire-tokens"} }),
	once(2, func(g *generator) Step { return Step{Do: "advance", N: g.few()} }),
	once(1, func(g *generator) Step { return Step{Do: "hide", Key: g.key()} }),
	once(5, func(g *generator) Step { return Step{Do: "cut"} }),
	once(5, func(g *generator) Step { return Step{Do: "cut-next", N: g.few(), For: g.events(4000)} }),
	once(4, func(g *generator) Step { return g.damage("damage-lists") }),
	once(4, func(g *generator) Step { return g.damage("damage-watches") }),
	once(4, func(g *generator) Step { return g.damage("damage-streams") }),
	once(3, func(g *generator) Step { return Step{Do: "wrong-types", N: g.few()} }),
	spell(4, func(g *generator) Step { return Step{Do: "freeze"} }, Step{Do: "thaw"}),
	spell(4, func(g *generator) Step { return Step{Do: "refuse", N: 1} }, Step{Do: "refuse"}),
	spell(2, func(g *generator) Step { return Step{Do: "transforms-fail", N: 1} }, Step{Do: "transforms-fail"}),
	spell(2, func(g *generator) Step { return Step{Do: "indexes-fail", N: 1} }, Step{Do: "indexes-fail"}),
	spell(2, func(g *generator) Step {
		return Step{Do: "transforms-take", For: time.Duration(g.random.IntN(2000)) * time.Millisecond}
	}, Step{Do: "transforms-take"}),
	spell(1, func(g *generator) Step {
		return Step{Do: "indexing-takes", For: time.Duration(g.random.IntN(500)) * time.Millisecond}
	}, Step{Do: "indexing-takes"}),
	once(5, func(g *generator) Step {
		return Step{Do: "join", Mirror: g.random.IntN(3), N: g.random.IntN(3), For: pick(g, 0, 0, time.Second)}
	}),
	once(3, func(g *generator) Step { return Step{Do: "leave", Mirror: g.random.IntN(3), N: g.random.IntN(4)} }),
	spell(4, func(g *generator) Step { return Step{Do: "stall", Mirror: g.random.IntN(3)} }, Step{Do: "release"}),
	once(3, func(g *generator) Step { return Step{Do: "stop", Mirror: g.random.IntN(3)} }),
	once(1, func(g *generator) Step { return Step{Do: "again", Mirror: g.random.IntN(3)} }),
	once(6, func(g *generator) Step { return Step{Do: "fresh", Mirror: g.random.IntN(3), Key: pick(g, "", g.key())} }),
	once(4, func(g *generator) Step { return Step{Do: "verify", Mirror: g.random.IntN(3)} }),
	once(2, func(g *generator) Step { return Step{Do: "lose", Mirror: g.random.IntN(3), N: g.few()} }),
	once(4, func(g *generator) Step { return Step{Do: "settle"} }),
}
