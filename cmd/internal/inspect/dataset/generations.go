package dataset

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/penstock/penstock/store"
)

// Renamed returns the names that the columns of generation from have in generation to, by their
// names in from. Columns that only one of the generations has are left out. Renamed returns nil if
// it is not known what happened in between, because a generation was pruned or is corrupt.
//
// The log has the operations, so Renamed replays them from one generation to the next: a column
// that was renamed, and then another one that got its old name, are told apart in this way only.
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

// unknown reports whether the error means that a generation is not kept or cannot be read.
func unknown(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrCorrupt)
}

// follow returns the names in the generation of m, by the names in generation from. names has the
// same for each generation from `from` to the one before m. A restore takes over the names of the
// generation that it restored, which may be before `from`; then the names are followed from there.
// nil means that the names are not known.
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

// inverse swaps keys and values.
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
