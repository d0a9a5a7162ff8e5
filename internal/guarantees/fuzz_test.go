package guarantees

// transformByLabel is a transform whose result is set by the object's label. It marks its
// result, so that a second transform is noticed.
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
