package script

import (
	"math/rand/v2"
	"time"
)

// Generate returns the script of a seed. It is deterministic.
func Generate(seed uint64) Script {
	g := &generator{random: rand.New(rand.NewPCG(seed, 0))}
	s := Script{Seed: seed, Setup: g.setup()}
	g.mirrors = len(s.Setup.Mirrors)
	// Each script prefers some steps, so that these often coincide.
	g.drawWeights()
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

// choice is a possible step with its weight.
type choice struct {
	weight int
	make   func(*generator) []Step
}

func (g *generator) one(in int) bool { return g.random.IntN(in) == 0 }

func pick[T any](g *generator, from ...T) T { return from[g.random.IntN(len(from))] }

func (g *generator) setup() Setup {
	s := Setup{
		HTTP: g.one(3), HTTP2: g.one(2), Objects: pick(g, 0, 1, 5, 12, 30), HistoryLimit: pick(g, 0, 0, 0, 20),
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
			KindForeign, KindNamespaces, KindOverlap),
		// No page is of one object: only a check of the version is.
		Strategy: pick(g, 0, 0, 1, 2, 3), PageSize: pick[int64](g, 0, 0, 2, 3, 7),
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
			Filter:     pick(g, "", "", "", FilterUntyped, FilterTyped),
		})
	}
	return m
}

// drawWeights draws the weights of this script's steps.
func (g *generator) drawWeights() {
	for _, c := range choices {
		c.weight *= pick(g, 0, 1, 1, 3)
		g.choices = append(g.choices, c)
		g.total += c.weight
	}
	writes := choice{g.total/2 + 1, (*generator).writes}
	g.choices = append(g.choices, writes)
	g.total += writes.weight
}

// step draws a step, or two if it lasts until the second.
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

// pause draws the time until the next step, mostly short, so that steps coincide.
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

func (g *generator) key() string { return KeyAt(g.random.IntN(14)) }

func (g *generator) kind() string { return pick(g, failureKinds...) }

// smallNumber draws a small number, rarely a larger one.
func (g *generator) smallNumber() int { return 1 + g.random.IntN(pick(g, 1, 2, 4, 12)) }

func (g *generator) writes() []Step {
	switch g.random.IntN(20) {
	case 0, 1, 2:
		return []Step{{Do: "delete", Key: g.key()}}
	case 3, 4:
		return []Step{{Do: "recreate", Key: g.key()}}
	case 5:
		return []Step{{Do: "write", Key: g.key(), What: pick(g, BadTransform, BadTransformPanic, BadIndex, BadIndexPanic, BadKey, BadDecode)}}
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

// lasting is a choice of a step that lasts until a later one.
func lasting(weight int, begin func(*generator) Step, end Step) choice {
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

// enduring is a choice of a step that lasts for up to half an hour: long enough for what happens
// once a minute to happen often.
func enduring(weight int, begin func(*generator) Step, end Step) choice {
	steps := lasting(weight, begin, end)
	return choice{weight, func(g *generator) []Step {
		made := steps.make(g)
		made[len(made)-1].After = time.Duration(g.random.IntN(1800)) * time.Second
		return made
	}}
}

// events draws a number of events or bytes, which is stored in For.
func (g *generator) events(most int) time.Duration { return time.Duration(g.random.IntN(most)) }

func (g *generator) damage(answers string) Step {
	return Step{Do: answers, N: g.smallNumber(), What: pick(g, DamagedByte, DamagedByte, DamagedCut, DamagedEnd), For: g.events(10000)}
}

var choices = []choice{
	once(8, func(g *generator) Step { return Step{Do: "fail-lists", N: g.smallNumber(), What: g.kind()} }),
	once(8, func(g *generator) Step { return Step{Do: "fail-watches", N: g.smallNumber(), What: g.kind()} }),
	once(6, func(g *generator) Step { return Step{Do: "break-watches", What: g.kind()} }),
	once(6, func(g *generator) Step { return Step{Do: "close-watches"} }),
	once(4, func(g *generator) Step { return Step{Do: "close-next-watches", N: g.smallNumber(), For: g.events(6)} }),
	once(4, func(g *generator) Step {
		return Step{Do: "break-next-watches", N: g.smallNumber(), For: g.events(6), What: g.kind()}
	}),
	lasting(3, func(g *generator) Step { return Step{Do: "hang-lists", N: g.smallNumber()} }, Step{Do: "go-on"}),
	lasting(3, func(g *generator) Step { return Step{Do: "hang-watches", N: g.smallNumber()} }, Step{Do: "go-on"}),
	lasting(3, func(g *generator) Step {
		return Step{Do: "delay-lists", For: time.Duration(g.random.IntN(20)) * time.Second}
	}, Step{Do: "delay-lists"}),
	lasting(2, func(g *generator) Step {
		return Step{Do: "delay-watches", For: time.Duration(g.random.IntN(20)) * time.Second}
	}, Step{Do: "delay-watches"}),
	lasting(3, func(g *generator) Step {
		return Step{Do: "delay-events", For: time.Duration(g.random.IntN(3000)) * time.Millisecond}
	}, Step{Do: "delay-events"}),
	lasting(1, func(g *generator) Step { return Step{Do: "deaf-lists", N: g.smallNumber()} }, Step{Do: "go-on"}),
	lasting(1, func(g *generator) Step { return Step{Do: "deaf-watches", N: g.smallNumber()} }, Step{Do: "go-on"}),
	lasting(4, func(g *generator) Step { return Step{Do: "silence"} }, Step{Do: "resume"}),
	once(3, func(g *generator) Step { return Step{Do: "old-lists", N: g.smallNumber(), For: g.events(30)} }),
	once(2, func(g *generator) Step { return Step{Do: "old-bookmark", N: g.smallNumber()} }),
	once(3, func(g *generator) Step { return Step{Do: "bookmarks"} }),
	once(1, func(g *generator) Step { return Step{Do: "double-bookmarks", N: g.random.IntN(2)} }),
	once(3, func(g *generator) Step { return Step{Do: "no-initial-end", N: g.smallNumber()} }),
	once(2, func(g *generator) Step { return Step{Do: "restore", N: g.random.IntN(30)} }),
	once(6, func(g *generator) Step { return Step{Do: "compact"} }),
	once(3, func(g *generator) Step { return Step{Do: "compact-watches"} }),
	once(3, func(g *generator) Step { return Step{Do: "expire-tokens"} }),
	once(2, func(g *generator) Step { return Step{Do: "advance", N: g.smallNumber()} }),
	once(1, func(g *generator) Step { return Step{Do: "hide", Key: g.key()} }),
	once(5, func(g *generator) Step { return Step{Do: "cut"} }),
	once(5, func(g *generator) Step { return Step{Do: "cut-next", N: g.smallNumber(), For: g.events(4000)} }),
	once(4, func(g *generator) Step { return g.damage("damage-lists") }),
	once(4, func(g *generator) Step { return g.damage("damage-watches") }),
	once(4, func(g *generator) Step { return g.damage("damage-streams") }),
	once(3, func(g *generator) Step { return Step{Do: "wrong-types", N: g.smallNumber()} }),
	lasting(4, func(g *generator) Step { return Step{Do: "freeze"} }, Step{Do: "thaw"}),
	lasting(4, func(g *generator) Step { return Step{Do: "refuse", N: 1} }, Step{Do: "refuse"}),
	lasting(2, func(g *generator) Step { return Step{Do: "transforms-fail", N: 1} }, Step{Do: "transforms-fail"}),
	lasting(2, func(g *generator) Step { return Step{Do: "indexes-fail", N: 1} }, Step{Do: "indexes-fail"}),
	lasting(2, func(g *generator) Step {
		return Step{Do: "transforms-take", For: time.Duration(g.random.IntN(2000)) * time.Millisecond}
	}, Step{Do: "transforms-take"}),
	lasting(1, func(g *generator) Step {
		return Step{Do: "indexing-takes", For: time.Duration(g.random.IntN(500)) * time.Millisecond}
	}, Step{Do: "indexing-takes"}),
	once(5, func(g *generator) Step {
		return Step{Do: "join", Mirror: g.random.IntN(3), N: g.random.IntN(3), For: pick(g, 0, 0, time.Second)}
	}),
	once(3, func(g *generator) Step { return Step{Do: "leave", Mirror: g.random.IntN(3), N: g.random.IntN(4)} }),
	lasting(4, func(g *generator) Step { return Step{Do: "stall", Mirror: g.random.IntN(3)} }, Step{Do: "release"}),
	once(3, func(g *generator) Step { return Step{Do: "stop", Mirror: g.random.IntN(3)} }),
	once(1, func(g *generator) Step { return Step{Do: "again", Mirror: g.random.IntN(3)} }),
	once(6, func(g *generator) Step { return Step{Do: "fresh", Mirror: g.random.IntN(3), Key: pick(g, "", g.key())} }),
	once(4, func(g *generator) Step { return Step{Do: "verify", Mirror: g.random.IntN(3)} }),
	once(2, func(g *generator) Step { return Step{Do: "lose", Mirror: g.random.IntN(3), N: g.smallNumber()} }),
	once(4, func(g *generator) Step { return Step{Do: "settle"} }),

	// Proxies, and servers with habits of their own.
	enduring(6, func(g *generator) Step {
		after := time.Duration(pick(g, 4, 8, 8, 22, 50, 50, 60, 90)) * time.Second
		what := pick(g, LimitIdleCut, LimitIdleCut, LimitIdleEnd, LimitCut, LimitEnd)
		return Step{Do: "limit-watches", What: what, For: after}
	}, Step{Do: "limit-watches"}),
	once(3, func(g *generator) Step {
		after := pick(g, 0, 500*time.Millisecond, 2*time.Second, 20*time.Second)
		return Step{Do: "forget", Key: g.key(), For: after}
	}),
	once(4, func(g *generator) Step {
		return Step{Do: "lists-behind", N: g.smallNumber(), For: g.events(30)}
	}),
	once(4, func(g *generator) Step {
		return Step{Do: "no-versions", N: g.smallNumber(), What: pick(g, "empty", "")}
	}),
	enduring(2, func(g *generator) Step {
		return Step{Do: "refuse-watches", N: 1, What: NotAllowed}
	}, Step{Do: "refuse-watches"}),
	once(3, func(g *generator) Step { return Step{Do: "die"} }),
	lasting(3, func(g *generator) Step {
		return Step{Do: "forbid", Key: pick(g, Namespaces...)}
	}, Step{Do: "forbid"}),
	once(1, func(g *generator) Step { return Step{Do: "forbid", Key: pick(g, Namespaces...)} }),
	once(3, func(g *generator) Step { return Step{Do: "set"} }),
	once(4, func(g *generator) Step { return Step{Do: "replace", Mirror: g.random.IntN(3)} }),
}
