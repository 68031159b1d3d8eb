package zarr

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
)

// Limits of the metadata that is read.
const (
	mostMetadata = 64 << 20 // bytes of a file of metadata
	mostNodes    = 100_000
	mostDepth    = 32
)

// Is reports whether a folder has the metadata of a hierarchy.
func Is(files Files) bool {
	for _, name := range []string{nodeName, consolidatedName, groupName, arrayName} {
		if f, err := files.Open(name); err == nil {
			f.Close()
			return true
		}
	}
	return false
}

// Group is a hierarchy: a group with all arrays below it, or one array.
type Group struct {
	Format     int                   // version: 2 or 3
	Arrays     []*Array              // by path
	Attributes Attributes            // of the root
	Groups     map[string]Attributes // of the groups, by path

	files Files
	nodes int
}

// Open reads the metadata of a hierarchy: the consolidated metadata if it exists, otherwise the metadata of each node.
// It reads no chunk. An array that cannot be read has its reason in Err, so that it does not prevent the reading of
// other arrays.
func Open(files Files) (*Group, error) {
	g := &Group{files: files}
	err := g.open()
	slices.SortFunc(g.Arrays, func(a, b *Array) int { return strings.Compare(a.Path, b.Path) })
	return g, err
}

// open tries version 3 first, then version 2 with consolidated metadata, then without. Every question is a request in a
// bucket, and folders can only be listed in the last case.
func (g *Group) open() error {
	text, err := g.read(nodeName)
	if err != nil {
		return err
	}
	if text != nil {
		g.Format = 3
		return g.addNode("", text, 0)
	}
	if text, err = g.read(consolidatedName); err != nil {
		return err
	}
	g.Format = 2
	if text != nil {
		return g.addConsolidated2(text)
	}
	found, err := g.addFolder2("", 0)
	if err == nil && !found {
		err = fmt.Errorf("neither %s, %s nor %s in it: %w", nodeName, groupName, arrayName, ErrNotZarr)
	}
	return err
}

// IsCells reports whether anndata wrote the hierarchy, whose arrays are parts of matrices and of columns.
func (g *Group) IsCells() bool { return g.Attributes.areCells() }

func (a Attributes) areCells() bool {
	var kind string
	return json.Unmarshal(a["encoding-type"], &kind) == nil && kind == "anndata"
}

// AreCells is IsCells of the hierarchy in files, of which it reads the metadata of the root alone.
func AreCells(files Files) bool {
	var node node3
	text, err := readAll(files, nodeName, mostMetadata)
	if err == nil && text != nil {
		return json.Unmarshal(text, &node) == nil && node.Attributes.areCells()
	}
	text, err = readAll(files, attributesName, mostMetadata)
	return err == nil && json.Unmarshal(text, &node.Attributes) == nil && node.Attributes.areCells()
}

func (g *Group) read(name string) ([]byte, error) { return readAll(g.files, name, mostMetadata) }

// note keeps the attributes of the group at a path.
func (g *Group) note(at string, attributes Attributes) {
	if g.Groups == nil {
		g.Groups = make(map[string]Attributes)
	}
	g.Groups[at] = attributes
}

// add adds an array to the hierarchy.
func (g *Group) add(path string, a *Array) error {
	if len(g.Arrays) == mostNodes {
		return fmt.Errorf("more than %d arrays: %w", mostNodes, meta.ErrUnsupported)
	}
	a.Path, a.Format, a.files = path, g.Format, g.files
	g.Arrays = append(g.Arrays, a)
	return nil
}

// node3 is the metadata of a group of version 3, with the members that an array has, too.
type node3 struct {
	ZarrFormat   int        `json:"zarr_format"`
	NodeType     string     `json:"node_type"`
	Attributes   Attributes `json:"attributes"`
	Consolidated *struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	} `json:"consolidated_metadata"`
}

// addNode adds a node of version 3 and the nodes below it.
func (g *Group) addNode(at string, text []byte, depth int) error {
	var n node3
	if err := json.Unmarshal(text, &n); err != nil {
		return fmt.Errorf("%s: %w: %w", path.Join(at, nodeName), err, meta.ErrCorrupt)
	}
	if n.ZarrFormat != 3 {
		return fmt.Errorf("%s: version %d: %w", path.Join(at, nodeName), n.ZarrFormat, meta.ErrUnsupported)
	}
	if at == "" {
		g.Attributes = n.Attributes
	}
	if n.NodeType == "group" {
		g.note(at, n.Attributes)
	}
	switch {
	case n.NodeType == "array":
		return g.add(at, parseArray3(text))
	case n.NodeType != "group":
		return fmt.Errorf("%s: node type %q: %w", path.Join(at, nodeName), n.NodeType, meta.ErrUnsupported)
	case n.Consolidated == nil:
		return g.addFolder3(at, depth)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Consolidated.Metadata)) {
		var child node3
		text := n.Consolidated.Metadata[name]
		if err := json.Unmarshal(text, &child); err != nil {
			return fmt.Errorf("%s: consolidated metadata of %q: %w: %w", path.Join(at, nodeName), name, err, meta.ErrCorrupt)
		}
		if child.NodeType != "array" {
			g.note(path.Join(at, name), child.Attributes)
		} else if err := g.add(path.Join(at, name), parseArray3(text)); err != nil {
			return err
		}
	}
	return nil
}

// Parse returns the array at a path of a hierarchy that has this metadata of version 3. It returns nil for the metadata
// of a group.
func Parse(files Files, at string, text []byte) (*Array, error) {
	var n node3
	if err := json.Unmarshal(text, &n); err != nil || n.ZarrFormat != 3 {
		return nil, fmt.Errorf("%s: not metadata of version 3: %w", path.Join(at, nodeName), meta.ErrCorrupt)
	}
	if n.NodeType != "array" {
		return nil, nil
	}
	g := Group{Format: 3, files: files}
	err := g.add(at, parseArray3(text))
	return g.Arrays[0], err
}

// folders lists the folders of a group.
func (g *Group) folders(at string, depth int) (names []string, err error) {
	list, err := g.files.ReadDir(path.Join(".", at))
	for _, e := range list {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if g.nodes += len(names); g.nodes > mostNodes || depth > mostDepth {
		return nil, fmt.Errorf("more than %d nodes, or %d levels: %w", mostNodes, mostDepth, meta.ErrUnsupported)
	}
	return names, err
}

// addFolder3 adds the nodes below a group of version 3.
func (g *Group) addFolder3(at string, depth int) error {
	list, err := g.folders(at, depth)
	if err != nil {
		return err
	}
	for _, name := range list {
		text, err := g.read(path.Join(at, name, nodeName))
		if err == nil && text != nil {
			err = g.addNode(path.Join(at, name), text, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addFolder2 adds a node of version 2 and the nodes below it. It reports whether such a node exists.
func (g *Group) addFolder2(at string, depth int) (found bool, err error) {
	text, err := g.read(path.Join(at, arrayName))
	if err != nil {
		return false, err
	}
	attributes, err := g.read(path.Join(at, attributesName))
	if err != nil {
		return false, err
	}
	if text != nil {
		return true, g.add(at, parseArray2(text, attributes))
	}
	if text, err = g.read(path.Join(at, groupName)); err != nil || text == nil {
		return false, err
	}
	var notes Attributes
	_ = json.Unmarshal(attributes, &notes) // notes of people, which need not be right
	if g.note(at, notes); at == "" {
		g.Attributes = notes
	}
	list, err := g.folders(at, depth)
	for _, name := range list {
		if _, err := g.addFolder2(path.Join(at, name), depth+1); err != nil {
			return true, err
		}
	}
	return true, err
}

// addConsolidated2 adds the nodes in consolidated metadata of version 2.
func (g *Group) addConsolidated2(text []byte) error {
	var c struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("%s: %w: %w", consolidatedName, err, meta.ErrCorrupt)
	}
	_ = json.Unmarshal(c.Metadata[attributesName], &g.Attributes) // as above
	for _, name := range slices.Sorted(maps.Keys(c.Metadata)) {
		at, base := path.Split(name)
		if base == attributesName {
			var notes Attributes
			_ = json.Unmarshal(c.Metadata[name], &notes) // as above
			g.note(strings.TrimSuffix(at, "/"), notes)
		}
		if base != arrayName {
			continue
		}
		if err := g.add(strings.TrimSuffix(at, "/"),
			parseArray2(c.Metadata[name], c.Metadata[at+attributesName])); err != nil {
			return err
		}
	}
	return nil
}
