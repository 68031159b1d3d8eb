package dataset

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/penstock/penstock/store"
)

// Renamed returns the names that columns of a generation of the dataset at path have in another one, by their names
// before. Columns that only one of them has are not in it. It is nil if generations that it follows were pruned or are
// corrupt.
func Renamed(path string, from, to int) (map[string]string, error) {
	if from > to {
		names, err := Renamed(path, to, from)
		return inverse(names), err
	}
	first, _, err := store.ReadGeneration(path, from)
	if unknown(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	same := make(map[string]string)
	for _, f := range first.Fields {
		same[f.Name] = f.Name
	}
	names := []map[string]string{same} // in the generations from the first one on
	for n := from + 1; n <= to; n++ {
		m, _, err := store.ReadGeneration(path, n)
		if unknown(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		next, err := follow(path, names, from, m)
		if err != nil || next == nil {
			return nil, err
		}
		names = append(names, next)
	}
	return names[to-from], nil
}

// unknown reports whether a generation is not kept, or cannot be read.
func unknown(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrCorrupt)
}

// follow returns the names of columns in the next generation from those in the ones before; nil if they are not known.
func follow(path string, names []map[string]string, from int, m *store.Manifest) (map[string]string, error) {
	next, change := names[len(names)-1], m.Change
	switch {
	case change == nil:
	case change.Operation == "restore" && change.From >= from:
		next = names[change.From-from]
	case change.Operation == "restore":
		earlier, err := Renamed(path, change.From, from)
		if err != nil || earlier == nil {
			return nil, err
		}
		next = inverse(earlier)
	case change.Operation == "rename column" && len(change.Columns) == 2:
		next = maps.Clone(next)
		for name, now := range next {
			if now == change.Columns[0] {
				next[name] = change.Columns[1]
			}
		}
	case change.Operation == "drop column":
		next = maps.Clone(next)
		maps.DeleteFunc(next, func(_, now string) bool { return slices.Contains(change.Columns, now) })
	}
	return next, nil
}

func inverse(names map[string]string) map[string]string {
	if names == nil {
		return nil
	}
	out := make(map[string]string)
	for name, to := range names {
		out[to] = name
	}
	return out
}
