package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/cachetest"
)

// deployment is what a set of equal pods belongs to. It is not served itself.
type deployment struct {
	namespace, name, tier string
	cpu, memory           string
	replicas              int

	// minor and patch are the image's version, hash stands for the pod template.
	minor, patches int
	hash           string
	replicaSetUID  types.UID
	// pods are the names of those that exist, oldest first.
	pods []string
}

func (d *deployment) image() string {
	return fmt.Sprintf("registry.example/%s:1.%d.%d", d.name, d.minor, d.patches)
}

// deployments are what runs in the demonstration.
func deployments() []*deployment {
	return []*deployment{
		{namespace: "shop", name: "storefront", tier: "web", cpu: "250m", memory: "256Mi", replicas: 24},
		{namespace: "shop", name: "checkout", tier: "web", cpu: "500m", memory: "512Mi", replicas: 18},
		{namespace: "shop", name: "cart", tier: "web", cpu: "250m", memory: "256Mi", replicas: 16},
		{namespace: "shop", name: "catalog", tier: "backend", cpu: "500m", memory: "1Gi", replicas: 20},
		{namespace: "shop", name: "recommend", tier: "backend", cpu: "1", memory: "2Gi", replicas: 12},
		{namespace: "payments", name: "gateway", tier: "web", cpu: "250m", memory: "256Mi", replicas: 14},
		{namespace: "payments", name: "ledger", tier: "backend", cpu: "500m", memory: "1Gi", replicas: 12},
		{namespace: "payments", name: "fraud-score", tier: "backend", cpu: "2", memory: "4Gi", replicas: 10},
		{namespace: "payments", name: "refunds", tier: "worker", cpu: "100m", memory: "128Mi", replicas: 6},
		{namespace: "identity", name: "login", tier: "web", cpu: "250m", memory: "256Mi", replicas: 16},
		{namespace: "identity", name: "sessions", tier: "backend", cpu: "250m", memory: "512Mi", replicas: 14},
		{namespace: "identity", name: "audit", tier: "worker", cpu: "100m", memory: "128Mi", replicas: 6},
		{namespace: "logistics", name: "routing", tier: "backend", cpu: "1", memory: "1Gi", replicas: 12},
		{namespace: "logistics", name: "tracking", tier: "web", cpu: "250m", memory: "256Mi", replicas: 16},
		{namespace: "logistics", name: "labels", tier: "worker", cpu: "100m", memory: "128Mi", replicas: 8},
		{namespace: "search", name: "query", tier: "web", cpu: "1", memory: "2Gi", replicas: 18},
		{namespace: "search", name: "indexer", tier: "worker", cpu: "2", memory: "4Gi", replicas: 14},
		{namespace: "search", name: "suggest", tier: "backend", cpu: "500m", memory: "1Gi", replicas: 10},
		{namespace: "monitoring", name: "collector", tier: "backend", cpu: "250m", memory: "512Mi", replicas: 16},
		{namespace: "monitoring", name: "dashboards", tier: "web", cpu: "100m", memory: "256Mi", replicas: 8},
		{namespace: "monitoring", name: "alerting", tier: "worker", cpu: "100m", memory: "128Mi", replicas: 6},
	}
}

// fleet is a cluster's worth of pods that change as those of a cluster do. It
// belongs to one goroutine. A seed fixes what happens, not when.
type fleet struct {
	source      *cachetest.Source
	random      *rand.Rand
	deployments []*deployment
	// steps is how many changes were made; agenda is what is to follow from them.
	steps  int
	agenda []task
}

// task is a change that is due at a step.
type task struct {
	due    int
	change func() error
}

// newFleet fills the source: all pods are running, but for a few that start.
func newFleet(source *cachetest.Source, seed uint64) (*fleet, error) {
	f := &fleet{source: source, random: rand.New(rand.NewPCG(seed, seed)), deployments: deployments()}
	for _, d := range f.deployments {
		d.minor, d.patches = f.random.IntN(30), f.random.IntN(10)
		f.newTemplate(d)
		for range d.replicas {
			if err := f.fill(d); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

func (f *fleet) newTemplate(d *deployment) {
	d.hash = randomName(f.random, 9)
	d.replicaSetUID = randomUID(f.random)
}

// fill adds a pod that has been there for a while.
func (f *fleet) fill(d *deployment) error {
	age := time.Duration(1+f.random.IntN(14*24*60)) * time.Minute
	pod := newPod(f.random, d, time.Now().Add(-age))
	name := pod.GetName()
	if f.random.IntN(20) == 0 {
		f.later(1+f.random.IntN(20), func() error { return f.startUp(d, name) })
	} else {
		pod = nowRunning(f.random, pod, pod.GetCreationTimestamp().Time)
	}
	if _, err := f.source.Create(pod); err != nil {
		return err
	}
	d.pods = append(d.pods, name)
	return nil
}

// step makes one change: what is due, or else something new.
func (f *fleet) step() error {
	f.steps++
	for i, t := range f.agenda {
		if t.due <= f.steps {
			f.agenda = append(f.agenda[:i], f.agenda[i+1:]...)
			return t.change()
		}
	}
	d := f.deployments[f.random.IntN(len(f.deployments))]
	switch dice := f.random.IntN(20); {
	case dice < 1:
		return f.rollOut(d)
	case dice < 2:
		return f.patch(d)
	case dice < 8:
		return f.crash(d)
	case len(d.pods) > d.replicas || dice < 12 && len(d.pods) == d.replicas:
		return f.remove(d, d.pods[f.random.IntN(len(d.pods))])
	default:
		return f.add(d)
	}
}

// later puts a change on the agenda.
func (f *fleet) later(steps int, change func() error) {
	f.agenda = append(f.agenda, task{due: f.steps + steps, change: change})
}

// add creates a pod, which will run some time later.
func (f *fleet) add(d *deployment) error {
	pod := newPod(f.random, d, time.Now())
	name := pod.GetName()
	if _, err := f.source.Create(pod); err != nil {
		return err
	}
	d.pods = append(d.pods, name)
	f.later(4+f.random.IntN(12), func() error { return f.startUp(d, name) })
	return nil
}

func (f *fleet) startUp(d *deployment, name string) error {
	return f.update(d, name, func(pod *unstructured.Unstructured) *unstructured.Unstructured {
		return nowRunning(f.random, pod, time.Now())
	})
}

// crash takes a pod's container down; it comes up again some time later.
func (f *fleet) crash(d *deployment) error {
	name := d.pods[f.random.IntN(len(d.pods))]
	f.later(4+f.random.IntN(12), func() error { return f.startUp(d, name) })
	return f.update(d, name, func(pod *unstructured.Unstructured) *unstructured.Unstructured {
		return nowCrashed(pod, time.Now())
	})
}

// rollOut replaces every pod of the deployment, oldest first, by one with a newer
// image: each is created, runs, and only then one of the old goes.
func (f *fleet) rollOut(d *deployment) error {
	d.patches++
	f.newTemplate(d)
	for i, old := range slices.Clone(d.pods) {
		if i > 0 {
			f.later(2*i, func() error { return f.add(d) })
		}
		f.later(2*i+16, func() error { return f.remove(d, old) })
	}
	return f.add(d)
}

// patch gives every pod of the deployment a newer image in place, one after the
// other.
func (f *fleet) patch(d *deployment) error {
	d.patches++
	newImage := func(pod *unstructured.Unstructured) *unstructured.Unstructured { return withImage(pod, d.image()) }
	names := slices.Clone(d.pods)
	for i, name := range names[1:] {
		f.later(i, func() error { return f.update(d, name, newImage) })
	}
	return f.update(d, names[0], newImage)
}

// update changes a pod, or something else if it is gone by now.
func (f *fleet) update(d *deployment, name string, change func(*unstructured.Unstructured) *unstructured.Unstructured) error {
	if d.position(name) < 0 {
		return f.add(d)
	}
	pod, err := f.source.Get(d.namespace, name)
	if err != nil {
		return err
	}
	_, err = f.source.Update(change(pod.(*unstructured.Unstructured)))
	return err
}

// remove deletes a pod; one that is gone already is replaced instead, so that each
// step is a change.
func (f *fleet) remove(d *deployment, name string) error {
	at := d.position(name)
	if at < 0 || len(d.pods) == 1 {
		return f.add(d)
	}
	d.pods = append(d.pods[:at], d.pods[at+1:]...)
	_, err := f.source.Delete(d.namespace, name)
	return err
}

// position is where a pod's name stands, -1 if it is gone.
func (d *deployment) position(name string) int {
	return slices.Index(d.pods, name)
}
