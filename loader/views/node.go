package views

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/tensor"
)

// Suffix is the end of the name of every view file.
const Suffix = ".view.json"

// Is reports whether a path names a view, by its suffix.
func Is(path string) bool { return strings.HasSuffix(path, Suffix) }

// The root of a file has these values of "penstock" and "version".
const (
	format  = "view"
	version = 1
)

// Node is a view: exactly one of Dataset, Select, Zip, Concat, Window, Join and Derive is set, and only fields
// that belong to it.
type Node struct {
	Penstock string `json:"penstock,omitempty"` // "view" in the root of a file
	Version  int    `json:"version,omitempty"`  // 1 in the root of a file

	// Dataset is a path, relative to the folder of the file, or a URL.
	Dataset string `json:"dataset,omitempty"`
	ID      string `json:"id,omitempty"`    // that the dataset must have; "" is any
	Split   string `json:"split,omitempty"` // of the dataset; "" is all

	// Select has some records of a view: Records, in that order, or Ranges, or the records for which the expression
	// Where is true, see package expr. If none of the three is set, Select has all records.
	Select  *Node             `json:"select,omitempty"`
	Records *Numbers          `json:"records,omitempty"`
	Ranges  [][2]int          `json:"ranges,omitzero"`
	Where   string            `json:"where,omitempty"`
	Rename  map[string]string `json:"rename,omitempty"` // new names of fields, by their names in the view

	// Fields selects fields of a dataset, or of the view that Select selects from, in their order; null means all
	// fields.
	Fields []string `json:"fields,omitzero"`

	// Window has windows of the arrays that the fields of views are; By says which.
	Window Nodes           `json:"window,omitempty"`
	By     *combine.Window `json:"by,omitempty"`
	// Origins are combine.Window.Origins.
	Origins *Numbers `json:"origins,omitempty"`

	// Join has the fields of two views side by side, of records that have the same key; Match says which.
	Join  []*Node       `json:"join,omitempty"`
	Match *combine.Join `json:"match,omitempty"`

	// Derive has the fields of a view, and the fields that Expressions compute from them.
	Derive      *Node            `json:"derive,omitempty"`
	Expressions []combine.Derive `json:"expressions,omitempty"`

	Zip []*Node `json:"zip,omitempty"` // the fields of views side by side

	// Concat has the records of views one after the other. Fill has the values of fields that are missing in some
	// of the views.
	Concat []*Node            `json:"concat,omitempty"`
	Fill   combine.FillValues `json:"fill,omitzero"`
}

// Nodes are views; one alone is written without a list.
type Nodes []*Node

// MarshalJSON writes a single view as such, and several as a list.
func (n Nodes) MarshalJSON() ([]byte, error) {
	if len(n) == 1 {
		return json.Marshal(n[0])
	}
	return json.Marshal([]*Node(n))
}

// UnmarshalJSON reads a view, or a list of views. Unknown names are errors: a misspelt one would
// otherwise select other records without a word.
func (n *Nodes) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if len(text) > 0 && text[0] == '[' {
		return d.Decode((*[]*Node)(n))
	}
	*n = Nodes{new(Node)}
	return d.Decode((*n)[0])
}

// Numbers are record numbers: a list, or the path of a .npy file of whole numbers, relative to the folder
// of the view.
type Numbers struct {
	List []int
	Path string
}

// MarshalJSON writes a list or a path.
func (n Numbers) MarshalJSON() ([]byte, error) {
	if n.Path != "" {
		return json.Marshal(n.Path)
	}
	return json.Marshal(append([]int{}, n.List...))
}

// UnmarshalJSON reads a list or a path.
func (n *Numbers) UnmarshalJSON(text []byte) error {
	*n = Numbers{}
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &n.Path)
	}
	n.List = []int{}
	return json.Unmarshal(text, &n.List)
}

// Parse returns the view that the text of a file describes. Unknown names are errors.
func Parse(text []byte) (*Node, error) {
	n := new(Node)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(n); err != nil {
		return nil, fmt.Errorf("not a view: %w", worded(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("not a view: there is more after its end")
	}
	if n.Penstock != format {
		return nil, fmt.Errorf(`not a view: it does not have "penstock": %q`, format)
	}
	if n.Version != version {
		return nil, fmt.Errorf("a view of version %d; this program reads version %d", n.Version, version)
	}
	n.Penstock, n.Version = "", 0
	return n, n.check(0)
}

// worded returns an error of package json in words without Go types, since views are written by
// people who use Python.
func worded(err error) error {
	var of *json.UnmarshalTypeError
	if !errors.As(err, &of) {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if of.Field == "" {
		return fmt.Errorf("the root cannot be of type %s", of.Value)
	}
	return fmt.Errorf("%q cannot be of type %s", of.Field, of.Value)
}

// check refuses a node that is of no kind or of two, or that has properties of another kind.
func (n *Node) check(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("views are nested deeper than %d", maxDepth)
	}
	kinds := n.kinds()
	if len(kinds) != 1 {
		return fmt.Errorf("each part of a view has one of dataset, select, zip, concat, window, join and derive, not %d: %q",
			len(kinds), kinds)
	}
	kind := kinds[0]
	for _, p := range []struct {
		name, of string
		is       bool
	}{
		{"penstock", "the root", n.Penstock != ""}, {"version", "the root", n.Version != 0},
		{"id", "dataset", n.ID != ""}, {"split", "dataset", n.Split != ""},
		{"records", "select", n.Records != nil}, {"ranges", "select", n.Ranges != nil},
		{"where", "select", n.Where != ""}, {"rename", "select", n.Rename != nil},
		{"fields", "dataset or select", n.Fields != nil}, {"by", "window", n.By != nil},
		{"origins", "window", n.Origins != nil},
		{"match", "join", n.Match != nil}, {"expressions", "derive", n.Expressions != nil},
		{"fill", "concat", n.Fill != nil},
	} {
		if p.is && !strings.Contains(p.of, kind) {
			return fmt.Errorf("%q belongs to %s, and not to %s", p.name, p.of, kind)
		}
	}
	if kind == "window" && n.By == nil {
		return errors.New("a window needs \"by\", an object with its sizes")
	}
	if kind == "join" && (n.Match == nil || len(n.Join) != 2) {
		return errors.New("a join is of a list of two views, and needs \"match\", an object with \"on\"")
	}
	if kind == "derive" && len(n.Expressions) == 0 {
		return errors.New("a derive needs \"expressions\", a list of objects with \"name\" and \"expression\"")
	}
	parts := n.parts()
	if len(parts) == 0 && kind != "dataset" {
		return fmt.Errorf("%s of no views", kind)
	}
	for _, part := range parts {
		if part == nil {
			return fmt.Errorf("%s of null", kind)
		}
		if err := part.check(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// Kind returns the kind of the view: "dataset", "select", "zip", "concat", "window", "join" or "derive".
func (n *Node) Kind() string { return strings.Join(n.kinds(), " and ") }

func (n *Node) kinds() (kinds []string) {
	for _, k := range []struct {
		name string
		is   bool
	}{{"dataset", n.Dataset != ""}, {"select", n.Select != nil}, {"zip", n.Zip != nil}, {"concat", n.Concat != nil},
		{"window", n.Window != nil}, {"join", n.Join != nil},
		{"derive", n.Derive != nil}} {
		if k.is {
			kinds = append(kinds, k.name)
		}
	}
	return kinds
}

// parts returns the views that a view combines.
func (n *Node) parts() []*Node {
	if n.Select != nil {
		return []*Node{n.Select}
	}
	if n.Derive != nil {
		return []*Node{n.Derive}
	}
	return slices.Concat(n.Zip, n.Concat, n.Window, n.Join)
}

// Datasets calls f with every path in the view. f may change the path.
func (n *Node) Datasets(f func(path *string)) {
	if n.Dataset != "" {
		f(&n.Dataset)
	}
	for _, numbers := range []*Numbers{n.Records, n.Origins} {
		if numbers != nil && numbers.Path != "" {
			f(&numbers.Path)
		}
	}
	for _, part := range n.parts() {
		part.Datasets(f)
	}
}

// Read returns the view in a file, with its paths relative to the working directory.
func Read(path string) (*Node, error) {
	n, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("view %s: %w", path, err)
	}
	return n, nil
}

func read(path string) (*Node, error) {
	text, err := vfs.ReadNamed(path, maxFile)
	if errors.Is(err, vfs.ErrTooLarge) {
		return nil, fmt.Errorf("%w; name .npy files of numbers in \"records\" and \"origins\"", err)
	}
	if err != nil {
		return nil, err
	}
	n, err := Parse(text)
	if err != nil {
		return nil, shell.Bounded(err)
	}
	folder := filepath.Dir(path)
	n.Datasets(func(p *string) {
		*p = shell.Secret(*p)
		if !strings.Contains(*p, "://") && !filepath.IsAbs(*p) {
			*p = filepath.Join(folder, *p)
		}
	})
	return n, nil
}

// recordNumbers converts stored integers to record numbers.
func recordNumbers(v tensor.View) ([]int, error) {
	d, b := v.DType(), v.Bytes()
	if d.IsFloat() || d == tensor.Bool {
		return nil, fmt.Errorf("the numbers are %v; record numbers are integers", d)
	}
	out := make([]int, 0, v.Len())
	for ; len(b) > 0; b = b[d.Size():] {
		n, ok := d.Read(b).Int64()
		if !ok || n < 0 || n > math.MaxInt {
			return nil, fmt.Errorf("number %d of record numbers is %s", len(out), d.Text(b))
		}
		out = append(out, int(n))
	}
	return out, nil
}
