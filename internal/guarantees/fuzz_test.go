package guarantees

// transformByLabel is a transform whose answer an object names itself. What it
// returns is marked, so that one that is transformed again shows.
func transformByLabel(obj any) (any, error) {
	switch o := obj.(*object).DeepCopy(); o.Labels["v"] {
	case "bad":
		return nil, errBoom
	case "unwanted":
		return nil, nil
	default:
		o.Labels["transformed"] += "once"
		return o, nil
	}
}
