package cache

// This file reads what a queue has to know of an object, once: its key, and what the
// source said of it.

// identify reads a change's key from its object, and what was received.
func (f *DeltaFIFO) identify(c *change) (err error) {
	m, readable := readMetadata(c.Object)
	if f.named && readable && m.name != "" {
		c.key, c.received = m.text(), m.received
		return nil
	}
	// Whatever is the matter with the object, it is said as for any key function.
	if c.key, err = f.keyOf(c.Object); err != nil {
		return err
	}
	if !readable {
		m, _ = readMetadata(finalStateOf(c.Object))
	}
	c.received = m.received
	return nil
}
