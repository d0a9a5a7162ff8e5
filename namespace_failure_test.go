package cache

// keysHeldIn are the quarantined keys of a status.
func keysHeldIn(s Status) []string {
	var keys []string
	for _, held := range s.Quarantined {
		keys = append(keys, held.Key)
	}
	return keys
}
