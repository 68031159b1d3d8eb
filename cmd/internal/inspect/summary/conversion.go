package summary

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Conversion is a command that makes a dataset that can be mapped from datasets of an HDF5 file
// that cannot.
type Conversion struct {
	Command        string   `json:"command"`
	Datasets       []string `json:"datasets"`
	Records        int64    `json:"records"`
	Nanos          float64  `json:"record_ns,omitempty"`           // estimated time to read a random record of all of the datasets
	ConvertedNanos float64  `json:"converted_record_ns,omitempty"` // the same afterwards
	Gain           float64  `json:"gain,omitempty"`
}

// Conversions returns a command for each group of HDF5 datasets that can become the fields of one
// dataset, if at least one dataset of the group cannot be mapped. A group has the datasets of one
// length. If names repeat among them, as in train/x and test/x, each HDF5 group is a group of its
// own, because fields need different names. unread says that some datasets of the file are not read
// at all.
func Conversions(path string, nodes []Node, meta *meta.File, unread bool) (list []Conversion) {
	groups := groupsOf(nodes, meta)
	for i, group := range groups {
		if !slices.ContainsFunc(group, func(n *Node) bool {
			return n.Storage.Reading == nil || n.Storage.Reading.cannotBeUsed
		}) {
			continue
		}
		m := Conversion{Records: group[0].Shape[0]}
		for _, n := range group {
			m.Datasets = append(m.Datasets, n.Path[1:])
			if r := n.Storage.Reading; r != nil {
				m.Nanos += r.Nanos
				m.ConvertedNanos += r.ConvertedNanos
			}
		}
		if m.ConvertedNanos > 0 {
			m.Gain = m.Nanos / m.ConvertedNanos
		}
		m.Command = chunk.ConvertCommand(path, convertedPath(path, groups, i), fieldList(group, len(groups) == 1 && !unread))
		list = append(list, m)
	}
	return list
}

// Repack is a command of HDF5's own tools, which makes a file of which penstock reads datasets that
// it cannot read now.
type Repack struct {
	Command  string   `json:"command"`
	Datasets []string `json:"datasets"`
	Reasons  []string `json:"reasons"` // why each is not read
}

// Repacks returns the commands that repack the file. Datasets that need the same command share one
// entry.
func Repacks(path string, nodes []Node, meta *meta.File) (list []Repack) {
	to := filepath.Join(filepath.Dir(path), stem(path)+"-repacked.h5")
	for _, n := range nodes {
		if n.Storage == nil || n.Storage.Unread == "" || len(n.Storage.Fields) > 0 {
			continue
		}
		d, err := meta.Dataset(n.Path)
		if err != nil {
			continue
		}
		line := chunk.RepackCommand(d, path, to)
		if _, err := d.Spec(); err != nil || line == "" {
			continue
		}
		i := slices.IndexFunc(list, func(r Repack) bool { return r.Command == line })
		if i < 0 {
			i, list = len(list), append(list, Repack{Command: line})
		}
		list[i].Datasets = append(list[i].Datasets, n.Path[1:])
		list[i].Reasons = append(list[i].Reasons, n.Storage.Unread)
	}
	return list
}

// groupsOf groups the datasets that preprocess reads, in the order of the file: see Conversions.
func groupsOf(nodes []Node, meta *meta.File) (groups [][]*Node) {
	place := make(map[string]int) // index of a group, by its key
	names := make(map[string]int) // how many datasets of a length have a name
	key := func(n *Node, parts ...string) string {
		return strings.Join(append(parts, fmt.Sprint(n.Shape[0])), "\x00")
	}
	list := readableNodes(nodes, meta)
	for _, n := range list {
		names[key(n, base(n.Path))]++
	}
	twice := make(map[string]bool) // lengths at which a name repeats
	for _, n := range list {
		twice[key(n)] = twice[key(n)] || names[key(n, base(n.Path))] > 1
	}
	for _, n := range list {
		k := key(n)
		if twice[k] {
			k = key(n, filepath.Dir(n.Path))
		}
		i, ok := place[k]
		if !ok {
			i, groups = len(groups), append(groups, nil)
			place[k] = i
		}
		groups[i] = append(groups[i], n)
	}
	return groups
}

// readableNodes returns the datasets that preprocess reads, each once: a dataset may have several
// names.
func readableNodes(nodes []Node, meta *meta.File) (list []*Node) {
	seen := make(map[int64]bool)
	for i := range nodes {
		n := &nodes[i]
		if n.Storage == nil || n.Storage.Reading == nil && len(n.Storage.Fields) == 0 || seen[n.Storage.Header] {
			continue
		}
		d, err := meta.Dataset(n.Path)
		if err != nil || d.Records() == 0 || d.IsDimension() {
			continue
		}
		if spec, err := d.Spec(); len(n.Storage.Fields) == 0 && (err != nil || spec.Validate() != nil) {
			continue
		}
		seen[n.Storage.Header] = true
		list = append(list, n)
	}
	return list
}

// fieldList returns the value of --fields, "" if all datasets are wanted and all are at the root. A
// nested dataset gets the last part of its path as the name of its field.
func fieldList(group []*Node, all bool) string {
	nested := slices.ContainsFunc(group, func(n *Node) bool {
		return strings.Contains(n.Path[1:], "/") || !plainName(n.Path[1:])
	})
	if all && !nested {
		return ""
	}
	var parts []string
	for _, n := range group {
		part := n.Path[1:]
		if name := base(part); name != part && plainName(name) {
			part += "=" + name
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

// plainName reports whether preprocess accepts a name as the name of a field.
func plainName(name string) bool {
	return name != "" && name[0] != '-' && len(name) <= 100 && strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) < 0
}

// convertedPath returns the path of the dataset that group i becomes, beside the file. It has the
// name of the HDF5 group or, if that does not tell the groups apart, a number.
func convertedPath(path string, groups [][]*Node, i int) string {
	word := "mapped"
	if len(groups) > 1 {
		parent := func(g []*Node) string { return strings.Trim(filepath.Dir(g[0].Path), "/") }
		word = strings.ReplaceAll(parent(groups[i]), "/", "-")
		for k, g := range groups {
			if k != i && parent(g) == parent(groups[i]) || word == "" {
				word = fmt.Sprintf("mapped-%d", i+1)
			}
		}
	}
	return filepath.Join(filepath.Dir(path), stem(path)+"-"+word+".h5")
}

// stem returns the name of a file without folder and extension.
func stem(path string) string { return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) }
