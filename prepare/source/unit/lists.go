package unit

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// List is a list of units in a file, such as the units to train on.
type List struct {
	Name  string
	Units []string // names, or last elements of names
}

// Lists is the lists of units in a file as ranges of records. A unit may be in several lists.
type Lists struct {
	All     []store.Split
	Broken  []source.BrokenList
	columns *Columns
}

// Lists returns the records of the units in lists. A list without the name of any unit is skipped: it lists
// something else.
func (c *Columns) Lists(lists []List) Lists {
	number := make(map[string]int)
	for k, u := range c.units {
		number[path.Base(u.Name())] = k
	}
	for k, u := range c.units {
		number[u.Name()] = k
	}
	found := Lists{columns: c}
	for _, list := range lists {
		s, in, missing := store.Split{Name: list.Name}, make([]bool, len(c.units)), []string(nil)
		for _, name := range list.Units {
			if k, ok := number[strings.Trim(name, "/")]; ok {
				in[k] = true
			} else {
				missing = append(missing, name)
			}
		}
		for k, ok := range in {
			if ok && c.starts[k] < c.starts[k+1] {
				s.Ranges = append(s.Ranges, [2]int64{c.starts[k], c.starts[k+1]})
			}
		}
		switch {
		case s.Ranges == nil && missing == nil:
			found.Broken = append(found.Broken, source.BrokenList{Name: list.Name})
		case s.Ranges == nil:
		case missing != nil:
			found.Broken = append(found.Broken, source.BrokenList{Name: list.Name, Missing: missing})
		default:
			found.All = append(found.All, s)
		}
	}
	return found
}

// One returns the splits that a list divides the records into: the list and all other records. nil means that there
// is no such list.
func (l *Lists) One(name string) ([]store.Split, error) {
	for _, b := range l.Broken {
		if b.Name == name {
			return nil, fmt.Errorf("split %q: %v; correct the list, or read all records", name, b)
		}
	}
	if i := slices.IndexFunc(l.All, func(s store.Split) bool { return s.Name == name }); i >= 0 {
		return l.withOthers(l.All[i : i+1]), nil
	}
	return nil, nil
}

// Several returns the splits that lists divide the records into: the named lists, which must have no unit in common,
// or without names the lists of Disjoint. hints say which lists are no splits, and what to do.
func (l *Lists) Several(names []string) (splits []store.Split, hints []string, err error) {
	for _, name := range names {
		one, err := l.One(name)
		if err == nil && one == nil {
			err = fmt.Errorf("--split %s: the file has no such list of units; it has %s", name,
				cmp.Or(source.Enumerate(namesOf(l.All), 8), "none"))
		}
		if err != nil {
			return nil, nil, err
		}
		if i := slices.IndexFunc(splits, func(s store.Split) bool { return overlap(s, one[0]) }); i >= 0 {
			return nil, nil, fmt.Errorf("--split: %s and %s have units in common, and a record is in one split; name one of them",
				splits[i].Name, name)
		}
		splits = append(splits, one[0])
	}
	if len(names) > 0 {
		return l.withOthers(splits), nil, nil
	}
	splits, rest := l.disjoint(l.All)
	if rest != nil {
		others, _ := l.disjoint(rest)
		hints = append(hints, fmt.Sprintf("not stored as splits, as a record is in one split: %s; to store other lists than %s: %s",
			source.Enumerate(namesOf(rest), 8), source.Enumerate(namesOf(splits), 8),
			shell.Command("--split", strings.Join(namesOf(others), ","))))
	}
	return l.withOthers(splits), hints, nil
}

// disjoint chooses lists that have no unit in common: first the lists that are called train, valid or test, and then
// the longest lists, but a list of all units last. rest are the other lists.
func (l *Lists) disjoint(lists []store.Split) (chosen, rest []store.Split) {
	named := func(s store.Split) int {
		switch {
		case source.IsSplit(path.Base(s.Name)):
			return 0
		case s.Records() < l.columns.starts[len(l.columns.units)]:
			return 1
		}
		return 2
	}
	order := slices.Clone(lists)
	slices.SortStableFunc(order, func(a, b store.Split) int {
		return cmp.Or(cmp.Compare(named(a), named(b)), cmp.Compare(b.Records(), a.Records()))
	})
	for _, s := range order {
		if slices.ContainsFunc(chosen, func(c store.Split) bool { return overlap(c, s) }) {
			rest = append(rest, s)
		} else {
			chosen = append(chosen, s)
		}
	}
	slices.SortStableFunc(chosen, func(a, b store.Split) int {
		return source.CompareSplits(path.Base(a.Name), path.Base(b.Name))
	})
	return chosen, rest
}

// overlap reports whether two lists have a unit in common.
func overlap(a, b store.Split) bool {
	return slices.ContainsFunc(a.Ranges, func(r [2]int64) bool { return slices.Contains(b.Ranges, r) })
}

// withOthers adds a split of the records that are in none of the splits, if there are any.
func (l *Lists) withOthers(splits []store.Split) []store.Split {
	if splits == nil {
		return nil
	}
	var ranges [][2]int64
	for _, s := range splits {
		ranges = append(ranges, s.Ranges...)
	}
	slices.SortFunc(ranges, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	starts := l.columns.starts
	others, at := store.Split{Name: "others"}, int64(0)
	for _, r := range append(ranges, [2]int64{starts[len(starts)-1], 0}) {
		if at < r[0] {
			others.Ranges = append(others.Ranges, [2]int64{at, r[0]})
		}
		at = r[1]
	}
	if others.Ranges == nil {
		return slices.Clip(splits)
	}
	return append(slices.Clip(splits), others)
}

func namesOf(splits []store.Split) (names []string) {
	for _, s := range splits {
		names = append(names, s.Name)
	}
	return names
}
