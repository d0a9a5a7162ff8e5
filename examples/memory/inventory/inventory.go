// Package inventory is the program of the example: it reads which images run on which nodes. It is a
// package of its own, so that fieldsused reads only that, and not the mirror and the server.
package inventory

import (
	"fmt"
	"iter"
)

// Inventory has the images that run on the nodes.
type Inventory struct {
	// nodes has the number of containers by node and image.
	nodes   map[string]map[string]int
	pending int
}

// Of reads the pods that are not finished.
func Of(pods iter.Seq[*Pod]) *Inventory {
	found := &Inventory{nodes: map[string]map[string]int{}}
	for pod := range pods {
		if !isFinished(pod) {
			found.add(pod)
		}
	}
	return found
}

func isFinished(pod *Pod) bool {
	return pod.Status.Phase == "Succeeded" || pod.Status.Phase == "Failed"
}

func (inv *Inventory) add(pod *Pod) {
	node := pod.Spec.NodeName
	if node == "" {
		inv.pending++
		return
	}
	if inv.nodes[node] == nil {
		inv.nodes[node] = map[string]int{}
	}
	for _, container := range pod.Spec.Containers {
		inv.nodes[node][container.Image]++
	}
}

// String says how many there are.
func (inv *Inventory) String() string {
	images := map[string]bool{}
	containers := 0
	for _, node := range inv.nodes {
		for image, count := range node {
			images[image] = true
			containers += count
		}
	}
	return fmt.Sprintf("%d containers of %d images on %d nodes, %d pods are pending",
		containers, len(images), len(inv.nodes), inv.pending)
}
