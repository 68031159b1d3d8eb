package mmapds

import "context"

// SourceName returns what the source called a record when the dataset was made: the path of its
// file, the member of its archive. It is "" where the dataset holds no names (preprocess --names).
// Where they have to be fetched, it waits for that.
func (d *Dataset) SourceName(ctx context.Context, record int) (string, error) {
	if d.closed.Load() {
		return "", ErrClosed
	}
	if d.names == nil {
		return "", nil
	}
	var offsets [2]int64
	name, err := d.names.GatherRagged(ctx, d.names.specs[0].Name, []int{record}, offsets[:], nil)
	return string(name), err
}
