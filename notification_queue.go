package cache

// notificationQueue is notifications in order, in blocks of memory that are never moved:
// no operation takes longer the more there are. The zero value is ready.
type notificationQueue struct {
	blocks []*notificationBlock
	// head is the place of the first in the first block.
	head, len int
}

// notificationBlock is some 2.5 kB. An empty queue keeps one, so that a quiet day does not
// allocate.
type notificationBlock [32]notification

// at is the i-th from the front.
func (q *notificationQueue) at(i int) *notification {
	i += q.head
	return &q.blocks[i/len(notificationBlock{})][i%len(notificationBlock{})]
}

func (q *notificationQueue) push(n notification) {
	if q.head+q.len == len(q.blocks)*len(notificationBlock{}) {
		q.blocks = append(q.blocks, new(notificationBlock))
	}
	q.len++
	*q.at(q.len - 1) = n
}

// pop takes out the first, of which there must be one.
func (q *notificationQueue) pop() notification {
	first := q.at(0)
	n := *first
	*first = notification{}
	q.head++
	q.len--
	switch {
	case q.len == 0 && len(q.blocks) == cap(q.blocks) && len(q.blocks) == 1:
		q.head = 0
	case q.len == 0:
		q.blocks, q.head = []*notificationBlock{q.blocks[0]}, 0
	case q.head == len(notificationBlock{}):
		q.blocks[0] = nil
		q.blocks, q.head = q.blocks[1:], 0
	}
	return n
}
