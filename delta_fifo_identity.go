package cache

import "github.com/watchmirror/cache/internal/table"

// This file reads what a queue has to know of an object, once: its key, and what the
// source said of it.

// identify reads a change's key from its object, and what was received.
func (f *DeltaFIFO) identify(c *queued) error {
	var m metadata
	m.read(c.Object)
	if f.named && m.readable && m.name != "" {
		c.key, c.received = m.named(), m.received
		return nil
	}
	// Whatever is the matter with the object, it is said as for any key function.
	key, err := f.keyOf(c.Object)
	if err != nil {
		return err
	}
	c.key = table.KeyOf(key)
	if !m.readable {
		m.read(finalStateOf(c.Object))
	}
	c.received = m.received
	return nil
}

// keepText makes the text of the key, and keeps it: where it is asked for more than once.
func (c *queued) keepText() { c.key = table.KeyOf(c.key.String()) }
